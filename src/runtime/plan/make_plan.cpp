#include "runtime/graph/format.h"
#include "runtime/plan/binding_typos.h"
#include "runtime/plan/find_calls.h"
#include "runtime/plan/find_inlined.h"
#include "runtime/plan/find_layers.h"
#include "runtime/plan/find_places.h"
#include "runtime/plan/named_in_vain.h"
#include "runtime/plan/plan.h"

#include <torch/version.h>

namespace twinkle::runtime {

namespace {

// A mapping for another machine is allowed, with a warning.
void warn_of_other_machine(const Job& job, Plan& plan) {
    const auto torch = job.mapping.target.find("torch");
    const std::string here = fmt::format("{}.{}", TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR);
    if (torch != job.mapping.target.end() && torch->second != here) {
        plan.warnings.push_back(
            job.options.load_kernels
                ? fmt::format("the mapping was made for LibTorch {}, this is {}", torch->second,
                              here)
                : fmt::format("the model is for LibTorch {} and written by {}", torch->second,
                              here));
    }
}

}  // namespace

Plan make_plan(const Job& job, StandIns& stand_ins) {
    Plan plan;
    warn_of_other_machine(job, plan);
    const auto instances = instances_of(job.model);
    find_layers(job, instances, plan);
    if (!job.mapping.functions.empty()) {
        std::set<std::string> called;
        find_calls(job, plan, called);
        find_inlined(job, stand_ins, plan, called);
        report_uncalled(job, plan, called);
    }
    find_places(job, plan);
    for (std::string& doubt : doubtful_conditions(job.mapping, plan)) {
        plan.warnings.push_back(std::move(doubt));
    }
    warn_of_unmatched(job, plan);
    return plan;
}

}  // namespace twinkle::runtime
