#pragma once
// The candidates of a mapping for a site: which can serve it, in which order, and why the others
// cannot.

#include "runtime/graph/keep_reason.h"
#include "runtime/selection/selection.h"

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace twinkle::runtime {

// A candidate that a mapping offers for a site.
struct Candidate {
    Choice choice;
    std::string refused;  // why it cannot serve the site; empty: it can

    bool serves() const { return refused.empty(); }
};

// All candidates that a mapping offers for a site: those that can serve it in the order of
// preference, then the others.
struct Candidates {
    std::vector<Candidate> all;
    KeepReason reason;  // why none can serve, where none can

    tl::expected<Choice, KeepReason> first() const;
    // Appends the candidates of another binding.
    void add(Candidates others);
};

// Device, capability range (the smallest that contains the device wins), mode and flags, in this
// order, decide which can serve; mode and then the mapping's order decide which comes first. What
// is coarser than the model serves only where it is asked for, after all that is exact.
Candidates candidates_for(const Mapping& mapping, const MappedLayer& layer,
                          const SelectionContext& context);
Candidates candidates_for(const Mapping& mapping, const MappedFunction& function,
                          const SelectionContext& context);
Candidates candidates_for(const Mapping& mapping, const MappedPattern& pattern,
                          const SelectionContext& context);

}  // namespace twinkle::runtime
