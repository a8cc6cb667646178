#include "project/pin.h"

#include <tuple>

#include "base/text.h"
#include "twinkle/error.h"

namespace twinkle::project {

std::string Pin::text() const {
    return version ? std::to_string(*version) : !specifier.empty() ? specifier : revision;
}

Pin pin_of(const std::optional<std::variant<int, std::string>>& version,
           const std::string& revision) {
    Pin pin{.revision = revision};
    if (version && std::holds_alternative<int>(*version)) {
        pin.version = std::get<int>(*version);
    } else if (version) {
        pin.specifier = std::get<std::string>(*version);
    }
    return pin;
}

Pin pin_of(const std::string& repo_id, const std::optional<std::variant<int, std::string>>& version,
           const std::string& revision) {
    if (version && !revision.empty()) {
        throw Error(ErrorCode::malformed, {.what = "a version and a revision are both given",
                                           .where = repo_id,
                                           .why = "",
                                           .hint = "keep one of them"});
    }
    return pin_of(version, revision);
}

bool comes_before(const Pin& a, const Pin& b) {
    const auto rank = [](const Pin& pin) {
        return std::make_tuple(!pin.version, pin.version.value_or(0), pin.specifier.empty());
    };
    const auto of_a = rank(a);
    const auto of_b = rank(b);
    return of_a != of_b ? of_a < of_b
                        : std::tie(a.specifier, a.revision) < std::tie(b.specifier, b.revision);
}

bool is_revision(std::string_view text) {
    if (text.empty() || text.size() > 255 || text.front() == '-' || text.front() == '/') {
        return false;
    }
    for (const std::string& part : base::split(text, '/')) {
        if (part.empty() || part == "." || part.find("..") != std::string::npos) {
            return false;
        }
    }
    return text.find_first_of(" ~^:?*[\\\t\r\n") == std::string_view::npos &&
           base::printable(text) == text;
}

bool is_specifier(std::string_view text) {
    return !text.empty() && text.size() < 200 &&
           text.find_first_not_of(std::string(word_characters) + ".*<>=!~, +-") ==
               std::string_view::npos;
}

}  // namespace twinkle::project
