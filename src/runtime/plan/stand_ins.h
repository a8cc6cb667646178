#pragma once
// The functions that replaced calls go to: one for all calls that it can serve.

#include "runtime/calls/stand_in.h"
#include "runtime/patterns/pattern_sites.h"
#include "runtime/plan/site.h"
#include "runtime/plan/substitution.h"
#include "runtime/trace/region.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>

namespace twinkle::runtime {

class StandIns {
public:
    using Made = tl::expected<torch::jit::Function*, KeepReason>;

    StandIns(const Job& job, KernelCode& code) : substitution_(job, code) {}

    Substitution& substitutes() { return substitution_; }

    Made of_call(const Site& site, const FunctionCall& call);
    // Serves an InlinedCallSite, whose call is this region now.
    Made of_region(const Site& site, const Region& region);
    // Serves a place in this graph.
    Made of_place(const Site& site, const FlatGraph& graph, const PatternSite& place);

private:
    Made of_call(const Choice& choice, const FunctionCall& call);
    Made of_region(const Site& site, const Choice& choice, const Region& region,
                   const CallBinding& binding);
    Made of_place(const Choice& choice, const FlatGraph& graph, const PatternSite& place);
    // What the site's calls go to: what is made of its choice, or a function that chooses between
    // what is made of several and the original, by the size of an argument.
    Made choosing(const Site& site, torch::jit::CompilationUnit& unit,
                  const c10::QualifiedName& name, const std::function<Made(const Choice&)>& make,
                  const std::function<Made()>& original);
    Made make(const Choice& choice, const torch::jit::Module& instance, const CallShape& shape,
              const c10::QualifiedName& name, const std::string& what);

    Substitution substitution_;
    // The originals of patterns, on which stand-ins are modelled.
    std::shared_ptr<torch::jit::CompilationUnit> originals_;
    // Key: compilation unit, what the call passes, the candidate and its configuration.
    std::map<std::tuple<const void*, std::string, const FunctionCandidate*, std::string>, Made>
        known_;
    // Stand-ins for regions, by compilation unit, candidate, name and code, which shows only the
    // names of what it calls; configured ones have their configuration in theirs.
    std::map<std::tuple<const void*, const void*, std::string, std::string>, torch::jit::Function*>
        of_regions_;
};

}  // namespace twinkle::runtime
