#include "project/kernel_spec.h"

#include "base/number.h"
#include "base/text.h"
#include "twinkle/error.h"

namespace twinkle::project {
namespace {

constexpr const char* examples =
    "a kernel of the Hub is org/name, org/name@3, org/name@>=0.1,<0.3 or org/name@REVISION; a path "
    "starts with . or /";

[[noreturn]] void fail(std::string_view text, std::string why) {
    throw Error(ErrorCode::malformed, {.what = "this names no kernel",
                                       .where = base::printable(text),
                                       .why = std::move(why),
                                       .hint = examples});
}

std::optional<int> version_number(std::string_view text) {
    const auto number = base::parse_number<int>(text);
    return number && *number >= 0 && *number <= 1'000'000 ? number : std::nullopt;
}

// "0.1.0": a release, not a branch.
bool is_release(std::string_view text) {
    return text.find('.') != std::string_view::npos &&
           text.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

std::string KernelSpec::text() const {
    return pin.empty() ? repo_id : repo_id + "@" + pin.text();
}

bool is_path(std::string_view text) {
    std::error_code error;
    return text.starts_with('.') || text.starts_with('/') ||
           std::filesystem::exists(std::filesystem::path(text), error);
}

Pin parse_pin(std::string_view text) {
    Pin pin;
    pin.version = version_number(text);
    if (pin.version) {
        return pin;
    }
    const bool compares =
        !text.empty() && std::string_view("<>=!~").find(text.front()) != std::string_view::npos;
    if (compares || is_release(text)) {
        if (!is_specifier(text)) {
            fail(text, "it is no specifier of releases");
        }
        pin.specifier = text;
        return pin;
    }
    if (!is_revision(text)) {
        fail(text, "it is no version and no name of a branch, tag or commit");
    }
    pin.revision = text;
    return pin;
}

KernelSpec parse_kernel_spec(std::string_view text) {
    const auto at = text.find('@');
    KernelSpec spec{std::string(text.substr(0, at)), {}};
    if (!is_repository_id(spec.repo_id)) {
        fail(text, "it is not org/name, and there is no such file or folder");
    }
    if (at != std::string_view::npos) {
        spec.pin = parse_pin(text.substr(at + 1));
    }
    return spec;
}

}  // namespace twinkle::project
