#pragma once
// The number of one release: "1.0", "v0.1.0", "2!1.0rc1.post2.dev3+cu130" (PEP 440).

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::project {

struct Release {
    std::uint64_t epoch = 0;
    std::vector<std::uint64_t> numbers;
    struct Pre {
        char letter = 'a';  // 'a', 'b', or 'r' for rc: in this order
        std::uint64_t number = 0;
        auto operator<=>(const Pre&) const = default;
    };
    std::optional<Pre> pre;
    std::optional<std::uint64_t> post;
    std::optional<std::uint64_t> dev;
    std::vector<std::string> local;  // the parts behind the "+", in lower case
    std::string spelled;             // as it was written

    bool is_prerelease() const { return pre || dev; }
};

// None: it is no number of a release. A leading "v" is allowed, as are the other spellings that
// Python's tools accept.
std::optional<Release> parse_release(std::string_view text);

// Trailing zeros do not count: "1.0" and "1" are equal.
std::strong_ordering compare(const Release& a, const Release& b);
// The same without the local parts.
std::strong_ordering compare_public(const Release& a, const Release& b);

}  // namespace twinkle::project
