#pragma once
// Which state of a Hub repository somebody asks for, and the spellings that are allowed.

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "cache/layout.h"

namespace twinkle::project {

// What names of packages, and parts of versions, are made of.
inline constexpr std::string_view word_characters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

// One of them, or none.
struct Pin {
    std::optional<int> version{};  // branch v<int>
    std::string specifier{};       // "0.1.0", ">=0.1,<0.3": tags
    std::string revision{};        // branch, tag, commit

    bool empty() const { return !version && specifier.empty() && revision.empty(); }
    bool operator==(const Pin&) const = default;
    std::string text() const;  // "1", "0.1.0", "main"; empty if nothing is given
};

// Takes what programs give: a version or a specifier, or a revision.
Pin pin_of(const std::optional<std::variant<int, std::string>>& version,
           const std::string& revision);
// The same for a repository. Throws Error(malformed) if both are given.
Pin pin_of(const std::string& repo_id, const std::optional<std::variant<int, std::string>>& version,
           const std::string& revision);

// An order for lists: versions by number, then releases, then revisions.
bool comes_before(const Pin& a, const Pin& b);

using cache::is_repository_id;
bool is_revision(std::string_view text);
bool is_specifier(std::string_view text);  // the characters of one

}  // namespace twinkle::project
