#include "project/version_specifier.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace twinkle::project {
namespace {

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t");
    return first == std::string_view::npos
               ? std::string_view()
               : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string lower_case(std::string_view text) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return lower;
}

// Do the numbers of `release` begin with these? Missing ones are zeros.
bool has_prefix(const Release& release, const Release& prefix, std::size_t size) {
    if (release.epoch != prefix.epoch) {
        return false;
    }
    for (std::size_t i = 0; i < size; ++i) {
        const std::uint64_t number = i < release.numbers.size() ? release.numbers[i] : 0;
        if (number != prefix.numbers[i]) {
            return false;
        }
    }
    return true;
}

// "<1.0" does not mean 1.0rc1, unless it names a pre-release itself.
Release first_of(Release release) {
    if (!release.is_prerelease()) {
        release.dev = 0;
    }
    return release;
}

// ">1.0" does not mean 1.0.post1.
bool is_post_release_of(Release release, const Release& of) {
    const bool post = release.post.has_value() && !of.post;
    release.post.reset();
    release.dev.reset();
    return post && compare_public(release, of) == 0;
}

bool is_plain(const Release& release) {
    return !release.pre && !release.post && !release.dev && release.local.empty();
}

}  // namespace

std::optional<VersionSpecifier::Clause> VersionSpecifier::parse_clause(std::string_view text) {
    static constexpr std::array<std::pair<std::string_view, Operator>, 8> operators{
        {{"===", Operator::identical},
         {"==", Operator::equal},
         {"!=", Operator::not_equal},
         {">=", Operator::least},
         {"<=", Operator::most},
         {"~=", Operator::compatible},
         {">", Operator::more},
         {"<", Operator::less}}};
    const auto found = std::find_if(operators.begin(), operators.end(),
                                    [&](const auto& item) { return text.starts_with(item.first); });
    if (found == operators.end()) {
        return std::nullopt;
    }
    Clause clause;
    clause.op = found->second;
    std::string_view rest = trimmed(text.substr(found->first.size()));
    if (clause.op == Operator::identical) {
        clause.text = lower_case(rest);
        const bool one_word = rest.find_first_of(" \t;)") == std::string_view::npos;
        return rest.empty() || !one_word ? std::nullopt : std::optional(clause);
    }
    const bool equality = clause.op == Operator::equal || clause.op == Operator::not_equal;
    if (equality && rest.ends_with(".*")) {
        clause.wildcard = true;
        rest.remove_suffix(2);
    }
    auto release = parse_release(rest);
    if (!release || (clause.wildcard && !is_plain(*release)) ||
        (!equality && !release->local.empty()) ||
        (clause.op == Operator::compatible && release->numbers.size() < 2)) {
        return std::nullopt;
    }
    clause.release = std::move(*release);
    return clause;
}

std::optional<VersionSpecifier> VersionSpecifier::parse(std::string_view text) {
    VersionSpecifier specifier;
    if (parse_release(text)) {
        specifier.clauses_.push_back(*parse_clause("==" + std::string(text)));
        return specifier;
    }
    for (const std::string& part : base::split(text, ',')) {
        const std::string_view clause = trimmed(part);
        if (clause.empty()) {
            continue;
        }
        auto parsed = parse_clause(clause);
        if (!parsed) {
            return std::nullopt;
        }
        specifier.clauses_.push_back(std::move(*parsed));
    }
    return specifier.clauses_.empty() ? std::nullopt : std::optional(std::move(specifier));
}

bool VersionSpecifier::fits(const Clause& clause, const Release& release) {
    const Release& wanted = clause.release;
    switch (clause.op) {
        case Operator::identical: return lower_case(release.spelled) == clause.text;
        case Operator::equal:
        case Operator::not_equal: {
            const bool equal = clause.wildcard ? has_prefix(release, wanted, wanted.numbers.size())
                               : wanted.local.empty() ? compare_public(release, wanted) == 0
                                                      : compare(release, wanted) == 0;
            return equal == (clause.op == Operator::equal);
        }
        case Operator::least: return compare_public(release, wanted) >= 0;
        case Operator::most: return compare_public(release, wanted) <= 0;
        case Operator::compatible:
            return compare_public(release, wanted) >= 0 &&
                   has_prefix(release, wanted, wanted.numbers.size() - 1);
        case Operator::less: return compare_public(release, first_of(wanted)) < 0;
        case Operator::more:
            return compare_public(release, wanted) > 0 && !is_post_release_of(release, wanted);
    }
    return false;
}

bool VersionSpecifier::names_prerelease() const {
    return std::any_of(clauses_.begin(), clauses_.end(), [](const Clause& clause) {
        return clause.op != Operator::not_equal && clause.op != Operator::identical &&
               clause.release.is_prerelease();
    });
}

bool VersionSpecifier::admits(const Release& release, bool prereleases) const {
    return (prereleases || !release.is_prerelease() || names_prerelease()) &&
           std::all_of(clauses_.begin(), clauses_.end(),
                       [&](const Clause& clause) { return fits(clause, release); });
}

std::optional<std::string> newest_admitted(std::string_view text,
                                           std::span<const std::string> tags) {
    const auto specifier = VersionSpecifier::parse(text);
    if (!specifier) {
        return std::nullopt;
    }
    // A release that is named exactly is that tag, however others compare with it.
    for (const std::string& exact : {"v" + std::string(text), std::string(text)}) {
        if (parse_release(text) && std::find(tags.begin(), tags.end(), exact) != tags.end()) {
            return exact;
        }
    }
    for (const bool prereleases : {false, true}) {
        std::optional<Release> best;
        for (const std::string& tag : tags) {
            auto release = parse_release(tag);
            if (!release || !specifier->admits(*release, prereleases)) {
                continue;
            }
            const auto order = best ? compare(*release, *best) : std::strong_ordering::greater;
            // Two spellings of one release: the same answer in whatever order the tags come.
            if (order > 0 || (order == 0 && release->spelled > best->spelled)) {
                best = std::move(release);
            }
        }
        if (best) {
            return best->spelled;
        }
    }
    return std::nullopt;
}

}  // namespace twinkle::project
