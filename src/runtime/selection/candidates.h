#pragma once
// The candidates of a mapping for a site: which can serve it, in which order, and why the others
// cannot.

#include "runtime/graph/keep_reason.h"
#include "runtime/selection/selection.h"

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace twinkle::runtime {

// One that a mapping offers for a site.
struct Candidate {
    Choice choice;
    std::string refused;  // why it cannot serve the site; empty: it can

    bool serves() const { return refused.empty(); }
};

// All that a mapping offers for a site: those that can serve it in the order of preference, then
// the others.
struct Candidates {
    std::vector<Candidate> all;
    KeepReason reason;  // why none can serve, where none can

    tl::expected<Choice, KeepReason> first() const;
    // Those of another binding, which comes after this one.
    void add(Candidates others);
};

// Device, capability range (the smallest that contains the device wins), mode and flags, in this
// order, decide which can serve; mode and the mapping's order, which comes first.
Candidates candidates_for(const Mapping& mapping, const MappedLayer& layer,
                          const SelectionContext& context);
Candidates candidates_for(const Mapping& mapping, const MappedFunction& function,
                          const SelectionContext& context);
Candidates candidates_for(const Mapping& mapping, const MappedPattern& pattern,
                          const SelectionContext& context);

}  // namespace twinkle::runtime
