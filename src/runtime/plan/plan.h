#pragma once
// What a kernelize will do to a model, as data: every site with its choice, or why there is none.
// Making it changes nothing in the model.

#include "runtime/graph/function_calls.h"
#include "runtime/patterns/pattern_sites.h"
#include "runtime/plan/job.h"
#include "runtime/plan/site.h"

#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

class StandIns;

struct Plan {
    // Layers in the order of the module tree, then calls, then calls that a trace has inlined, then
    // places of patterns.
    std::vector<Site> sites;
    FunctionUses uses;               // which functions the model calls, and where
    std::vector<PatternRule> rules;  // of the mapping's patterns
    bool may_train = false;          // the model is for training
    // Where they are found, in the model as its classes are; none once graphs have changed.
    std::optional<PatternSearch> places;
    std::vector<std::string> warnings;
};

// Finds the sites and chooses. Calls that a trace has inlined are proved first, with the job's
// inputs, by code that `stand_ins` compiles beside the model's. Throws Error: malformed (a
// pattern), refused (strict, and a name that matches nothing).
Plan make_plan(const Job& job, StandIns& stand_ins);

}  // namespace twinkle::runtime
