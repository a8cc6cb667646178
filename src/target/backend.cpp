#include "target/backend.h"

#include <array>
#include <charconv>

namespace twinkle::target {
namespace {

struct KindNames {
    BackendKind kind;
    std::string_view type;     // in metadata.json
    std::string_view variant;  // in a variant's name, before the version
    std::string_view device;
    bool versioned;
};

constexpr std::array<KindNames, 8> kinds{{
    {BackendKind::cpu, "cpu", "cpu", "cpu", false},
    {BackendKind::cuda, "cuda", "cu", "cuda", true},
    {BackendKind::rocm, "rocm", "rocm", "rocm", true},
    {BackendKind::xpu, "xpu", "xpu", "xpu", true},
    {BackendKind::cann, "cann", "cann", "npu", true},
    {BackendKind::metal, "metal", "metal", "mps", false},
    {BackendKind::neuron, "neuron", "neuron", "neuron", false},
    {BackendKind::tpu, "tpu", "tpu", "tpu", false},
}};

const KindNames& names_of(BackendKind kind) {
    return kinds[static_cast<std::size_t>(kind)];
}

// Takes digits only, few enough for an int, and leaves the rest of the text.
std::optional<int> take_number(std::string_view& text) {
    std::size_t length = 0;
    while (length < text.size() && text[length] >= '0' && text[length] <= '9') {
        ++length;
    }
    int value = 0;
    if (length == 0 || length > 8) {
        return std::nullopt;
    }
    std::from_chars(text.data(), text.data() + length, value);
    text.remove_prefix(length);
    return value;
}

}  // namespace

std::string Version::text() const {
    return std::to_string(major) + "." + std::to_string(minor);
}

std::optional<Version> parse_version(std::string_view text) {
    const auto major = take_number(text);
    if (!major || !text.starts_with('.')) {
        return std::nullopt;
    }
    text.remove_prefix(1);
    const auto minor = take_number(text);
    if (!minor || (!text.empty() && text.find_first_of(".+ab-rd") != 0)) {
        return std::nullopt;
    }
    return Version{*major, *minor};
}

std::string Backend::text() const {
    std::string name(names_of(kind).variant);
    if (version) {
        name += std::to_string(version->major) + std::to_string(version->minor);
    }
    return name;
}

std::string Backend::device() const {
    return std::string(names_of(kind).device);
}

std::optional<Backend> parse_backend(std::string_view text) {
    for (const KindNames& names : kinds) {
        if (!names.versioned) {
            if (text == names.variant) {
                return Backend{names.kind, std::nullopt};
            }
            continue;
        }
        if (!text.starts_with(names.variant)) {
            continue;
        }
        // The last digit is the minor version, those before it the major one.
        std::string_view digits = text.substr(names.variant.size());
        if (digits.size() < 2 || (digits.size() > 2 && digits[0] == '0')) {
            continue;
        }
        std::string_view major_digits = digits.substr(0, digits.size() - 1);
        std::string_view minor_digits = digits.substr(digits.size() - 1);
        const auto major = take_number(major_digits);
        const auto minor = take_number(minor_digits);
        if (major && minor && major_digits.empty()) {
            return Backend{names.kind, Version{*major, *minor}};
        }
    }
    return std::nullopt;
}

std::string_view backend_type_name(BackendKind kind) {
    return names_of(kind).type;
}

std::optional<BackendKind> parse_backend_type(std::string_view text) {
    for (const KindNames& names : kinds) {
        if (text == names.type) {
            return names.kind;
        }
    }
    return std::nullopt;
}

std::optional<std::string> parse_device(std::string_view text) {
    if (text == "metal") {
        return "mps";
    }
    for (const KindNames& names : kinds) {
        if (text == names.device) {
            return std::string(text);
        }
    }
    return std::nullopt;
}

const std::string& device_names() {
    static const std::string names = [] {
        std::string text;
        for (const KindNames& kind : kinds) {
            text.append(text.empty() ? "" : ", ").append(kind.device);
        }
        return text;
    }();
    return names;
}

}  // namespace twinkle::target
