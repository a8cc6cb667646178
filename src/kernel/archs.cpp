#include "kernel/archs.h"

#include "base/number.h"

namespace twinkle::kernel {
namespace {

bool take_suffix(std::string_view& text, std::string_view suffix) {
    if (!text.ends_with(suffix)) {
        return false;
    }
    text.remove_suffix(suffix.size());
    return true;
}

bool cuda_supports(std::span<const std::string> archs, std::string_view device) {
    const auto capability = target::parse_version(device);
    bool understood = false;
    for (const std::string& arch : archs) {
        const auto supports =
            capability ? cuda_arch_supports(arch, *capability) : std::optional<bool>();
        if (supports.value_or(false)) {
            return true;
        }
        understood = understood || supports.has_value();
    }
    return !understood;
}

std::string_view without_flags(std::string_view gfx) {
    return gfx.substr(0, gfx.find(':'));
}

bool rocm_supports(std::span<const std::string> archs, std::string_view device) {
    for (const std::string& arch : archs) {
        if (without_flags(arch) == without_flags(device)) {
            return true;
        }
    }
    return archs.empty();
}

}  // namespace

std::optional<bool> cuda_arch_supports(std::string_view arch, target::Version capability) {
    const bool ptx = take_suffix(arch, "+PTX");
    const bool exact = take_suffix(arch, "a");
    const bool family = !exact && take_suffix(arch, "f");
    const auto dot = arch.find('.');
    if (dot == std::string_view::npos) {
        return std::nullopt;
    }
    const auto major = base::parse_number<std::uint16_t>(arch.substr(0, dot));
    const auto minor = base::parse_number<std::uint16_t>(arch.substr(dot + 1));
    if (!major || !minor) {
        return std::nullopt;
    }
    const target::Version built{*major, *minor};
    if (exact) {
        return capability == built;
    }
    if (ptx && !family) {
        return capability >= built;
    }
    return capability.major == built.major && capability.minor >= built.minor;
}

bool archs_support(std::span<const std::string> archs, target::BackendKind kind,
                   std::string_view device) {
    switch (kind) {
        case target::BackendKind::cuda: return cuda_supports(archs, device);
        case target::BackendKind::rocm: return rocm_supports(archs, device);
        default: return true;
    }
}

}  // namespace twinkle::kernel
