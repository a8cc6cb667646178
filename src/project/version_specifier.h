#pragma once
// Releases as Python's packages number them (PEP 440), for projects that ask for tags: "0.1.0" is
// the tag v0.1.0, ">=0.1,<0.3" the newest tag that fits.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "project/release.h"

namespace twinkle::project {

class VersionSpecifier {
public:
    // ">=0.1,<0.3", "==1.*", "~=2.1", "===x"; a bare release is "==". None: it is none of these.
    static std::optional<VersionSpecifier> parse(std::string_view text);

    // Pre-releases fit only where the specifier names one itself, or `prereleases` is set.
    bool admits(const Release& release, bool prereleases = false) const;
    bool names_prerelease() const;

private:
    enum class Operator { equal, not_equal, least, most, less, more, compatible, identical };
    struct Clause {
        Operator op = Operator::equal;
        Release release;
        bool wildcard = false;  // "==1.2.*"
        std::string text;       // of "==="
    };
    static std::optional<Clause> parse_clause(std::string_view text);
    static bool fits(const Clause& clause, const Release& release);

    std::vector<Clause> clauses_;
};

// The newest tag that the specifier admits, as it is spelled ("v0.1.0"). Tags that are no releases
// do not count; pre-releases do where the specifier names one, or nothing else fits.
std::optional<std::string> newest_admitted(std::string_view specifier,
                                           std::span<const std::string> tags);

}  // namespace twinkle::project
