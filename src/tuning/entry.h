#pragma once
// One measurement: what one candidate took for one invocation on one device. Entries are joined,
// not overwritten: of two for the same the better measured one stays, by an order of their content,
// so that the result is the same in whatever order they meet.

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/document.h"
#include "tuning/fingerprint.h"
#include "twinkle/invocation.h"

namespace twinkle::tuning {

// What a candidate is to the others. Ties go to the first of this order.
enum class Role { original, rule, other };

struct Candidate {
    std::string build{};                    // hash of its build
    base::Json cfg = base::Json::object();  // flat: truth values, integers, numbers, texts
    Role role = Role::other;

    std::string id() const { return candidate_id(build, cfg); }
};

// Nanoseconds of one run: the median, and bounds: the quartiles, or those in which the median of
// another run is expected (median_bounds.h).
struct Times {
    std::int64_t lower = 0;
    std::int64_t median = 0;
    std::int64_t upper = 0;
    std::int64_t runs = 0;
    // The median of the original, or of the rule's configuration, beside these in the same run; 0:
    // not known. What slows a machine down slows both.
    std::int64_t baseline = 0;

    bool operator==(const Times&) const = default;
};

// Rescales the times to another baseline. Unchanged if either baseline is unknown.
Times beside(const Times& times, std::int64_t baseline);

struct Entry {
    Environment environment;
    Invocation invocation;
    Candidate candidate;
    Times times{};
    std::string problem{};  // why it must not be chosen ("wrong values"); empty: it may be

    // Environment, invocation, candidate: entries with the same one are joined.
    using Identity = std::tuple<std::string, std::string, std::string>;
    Identity identity() const { return {environment.id(), invocation.hash(), candidate.id()}; }
    // Everything, on one line; equal for equal entries.
    std::string text() const;
};

// Whether `one` says more than `other` of the same identity: a problem before none, more runs, less
// spread, then the text. A total order on content.
bool is_better_measured(const Entry& one, const Entry& other);

using Entries = std::map<Entry::Identity, Entry>;
// Commutative, associative, idempotent.
void join(Entries& all, Entry entry);

// A whole file of the store: with a checksum, so that a changed byte is seen.
std::string entry_file(const Entry& entry);

// What of a file can be used, or why it cannot.
enum class Miss { absent, unreadable, link, too_large, damaged, other_version, wrong_key };

struct Rejected {
    Miss miss = Miss::damaged;
    std::string why;
};

// Never throws for what the bytes are.
std::optional<Entry> read_entry_file(std::string_view text, std::string_view origin,
                                     Rejected& rejected);

// Leaves out schema and checksum, as an export does.
base::Json entry_json(const Entry& entry);
Entry read_entry(const base::Node& node, const Environment& environment, std::string_view origin);
Environment read_environment(const base::Node& node, std::string_view origin);

// The one to take of what was measured for one invocation: the first in the fixed order that is not
// surely slower than the fastest, with those that have a problem left out. Surely: the bounds
// lie apart, and the medians by more than 2 %, each beside the same baseline. -1: there is none.
std::ptrdiff_t choose(const std::vector<const Entry*>& entries);
bool surely_slower(const Times& one, const Times& other);
bool is_as_fast(const Times& one, const Times& other);  // by the medians, within 2 %

}  // namespace twinkle::tuning
