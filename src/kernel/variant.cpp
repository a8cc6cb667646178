#include "kernel/variant.h"

#include <algorithm>
#include <tuple>

namespace twinkle::kernel {
namespace {

using target::Backend;
using target::BackendKind;
using target::Target;
using target::Version;

constexpr Version least_macos{26, 0};  // Metal builds are compiled with -std=metal4.0

// "213" is 2.13: one digit for the major version, the others for the minor one.
std::optional<Version> parse_joined_version(std::string_view digits) {
    if (digits.size() < 2) {
        return std::nullopt;
    }
    return target::parse_version(std::string(digits.substr(0, 1)) + "." +
                                 std::string(digits.substr(1)));
}

bool is_digits(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix)) {
        return false;
    }
    text.remove_prefix(prefix.size());
    return true;
}

std::string_view take_part(std::string_view& text) {
    const std::string_view part = text.substr(0, text.find('-'));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    return part;
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), text) != words.end();
}

// In noarch names, cann is called by its device.
std::string noarch_name(BackendKind kind) {
    return kind == BackendKind::cann ? "npu" : std::string(target::backend_type_name(kind));
}

std::optional<Variant> parse_noarch(std::string_view backend, Variant variant) {
    const auto kind = backend == "npu" ? BackendKind::cann : target::parse_backend_type(backend);
    if (backend != "universal" && !kind) {
        return std::nullopt;
    }
    variant.framework = Framework::noarch;
    variant.noarch_backend = backend;
    return variant;
}

// "B-CPU-OS"
std::optional<Variant> parse_platform(std::string_view text, Variant variant) {
    const auto backend = target::parse_backend(take_part(text));
    variant.cpu = take_part(text);
    variant.os = text;
    if (!backend || !is_one_of(variant.cpu, {"x86_64", "aarch64"}) ||
        !is_one_of(variant.os, {"linux", "darwin", "windows"})) {
        return std::nullopt;
    }
    variant.backend = *backend;
    return variant;
}

std::string framework_name(const Variant& variant) {
    switch (variant.framework) {
        case Framework::stable_abi: return "stable ABI " + variant.version.text();
        case Framework::torch: return "LibTorch " + variant.version.text();
        case Framework::tvm_ffi: return "tvm-ffi " + variant.version.text();
        case Framework::noarch: return "Python only";
    }
    return "";
}

std::string version_text(const std::optional<Version>& version) {
    return version ? version->text() : "none";
}

// Empty: it fits.
std::string framework_mismatch(const Variant& variant, const Target& target) {
    switch (variant.framework) {
        case Framework::stable_abi:
            if (!target.torch || variant.version > *target.torch) {
                return "it needs LibTorch " + variant.version.text() +
                       " or newer, the target has " + version_text(target.torch);
            }
            return "";
        case Framework::torch:
            if (variant.version != target.torch) {
                return "it is for LibTorch " + variant.version.text() + ", the target has " +
                       version_text(target.torch);
            }
            if (variant.cxx11 && variant.cxx11 != target.cxx11) {
                return std::string("its C++ ABI is ") + (*variant.cxx11 ? "cxx11" : "cxx98") +
                       ", that of the target is " +
                       (target.cxx11 ? (*target.cxx11 ? "cxx11" : "cxx98") : "not known");
            }
            return "";
        case Framework::tvm_ffi:
            if (variant.version != target.tvm_ffi) {
                return "it is for tvm-ffi " + variant.version.text() + ", the target has " +
                       version_text(target.tvm_ffi);
            }
            return "";
        case Framework::noarch: return "";
    }
    return "";
}

std::string backend_mismatch(const Variant& variant, const Backend& wanted, const Target& target) {
    const Backend& built = variant.backend;
    if (built.kind == BackendKind::cuda && wanted.kind == BackendKind::cuda) {
        const Version on = wanted.version.value_or(Version{});
        if (built.version->major != on.major || built.version->minor > on.minor) {
            return "it is for CUDA " + built.version->text() + ", the target has " + on.text();
        }
        return "";
    }
    if (built != wanted) {
        return "its backend is " + built.text() + ", not " + wanted.text();
    }
    if (built.kind == BackendKind::metal && (!target.macos || *target.macos < least_macos)) {
        return "Metal builds need macOS 26 or newer, the target has " + version_text(target.macos);
    }
    return "";
}

Judgement judge_noarch(const Variant& variant, const Backend& wanted) {
    const std::string& name = variant.noarch_backend;
    if (name == "universal") {
        return {true, "Python only, for every backend"};
    }
    if (name == noarch_name(wanted.kind)) {
        return {true, "Python only, for " + name};
    }
    return {false, "it is for " + name + ", not " + noarch_name(wanted.kind)};
}

}  // namespace

std::optional<Variant> parse_variant(std::string_view name) {
    Variant variant;
    variant.name = name;
    std::string_view rest = name;
    if (take_prefix(rest, "torch-stable-abi")) {
        variant.framework = Framework::stable_abi;
    } else if (take_prefix(rest, "tvm-ffi")) {
        variant.framework = Framework::tvm_ffi;
    } else if (take_prefix(rest, "torch-")) {
        return parse_noarch(rest, std::move(variant));
    } else if (take_prefix(rest, "torch")) {
        variant.framework = Framework::torch;
    } else {
        return std::nullopt;
    }
    const std::string_view digits = take_part(rest);
    const auto version = is_digits(digits) ? parse_joined_version(digits) : std::nullopt;
    if (!version) {
        return std::nullopt;
    }
    variant.version = *version;
    if (variant.framework == Framework::torch) {
        if (take_prefix(rest, "cxx11-")) {
            variant.cxx11 = true;
        } else if (take_prefix(rest, "cxx98-")) {
            variant.cxx11 = false;
        }
    }
    return parse_platform(rest, std::move(variant));
}

Judgement judge_variant(const Variant& variant, const Target& target, std::string_view device) {
    const auto wanted = target.backend_for(device);
    if (!wanted) {
        return {false, "the target has no device " + std::string(device)};
    }
    if (variant.framework == Framework::noarch) {
        return judge_noarch(variant, *wanted);
    }
    if (variant.cpu != target.cpu) {
        return {false, "it is for " + variant.cpu + ", the target is " + target.cpu};
    }
    if (variant.os != target.os) {
        return {false, "it is for " + variant.os + ", the target is " + target.os};
    }
    if (std::string why = framework_mismatch(variant, target); !why.empty()) {
        return {false, std::move(why)};
    }
    if (std::string why = backend_mismatch(variant, *wanted, target); !why.empty()) {
        return {false, std::move(why)};
    }
    return {true, framework_name(variant) + ", " + variant.backend.text() + ", " + variant.cpu +
                      "-" + variant.os};
}

bool is_preferred(const Variant& a, const Variant& b) {
    // Smaller is better; newer versions come first.
    const auto rank = [](const Variant& v) {
        const Version abi = v.framework == Framework::stable_abi ? v.version : Version{};
        const Version backend = v.backend.version.value_or(Version{});
        return std::make_tuple(v.framework, -abi.major, -abi.minor, v.cxx11.has_value(),
                               -backend.major, -backend.minor, v.noarch_backend == "universal");
    };
    const auto of_a = rank(a);
    const auto of_b = rank(b);
    return of_a != of_b ? of_a < of_b : a.name < b.name;
}

}  // namespace twinkle::kernel
