#include "runtime/plan/outline.h"

#include "runtime/patterns/pattern_calls.h"

namespace twinkle::runtime {

void outline_sites(const Mapping& mapping, const Plan& plan, torch::jit::Module& model,
                   const std::vector<std::string>& sites) {
    // Calls that a trace has inlined need no outlining: the kernelized model's calls show them
    // (verify/).
    outline_patterns(model, mapping, plan.rules, plan.may_train, sites);
}

}  // namespace twinkle::runtime
