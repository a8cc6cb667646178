#pragma once
// The code of the kernels that replace sites: loaded when the first site needs it, and recorded in
// the model when all are replaced.

#include "runtime/graph/keep_reason.h"
#include "runtime/plan/job.h"
#include "runtime/plan/plan.h"
#include "runtime/source/package_values.h"

#include <tl/expected.hpp>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace twinkle::runtime {

class KernelCode {
public:
    explicit KernelCode(const Job& job) : job_(job) {}

    // The compilation of the chosen kernel or source into the unit of this module, or why it cannot
    // be had. Throws Error where the fallback cannot_load is not allowed.
    tl::expected<Compilation*, KeepReason> of(const Choice& choice,
                                              const torch::jit::Module& module);

    // Records in the model the kernels and C++ functions that its replaced sites need. Warns of a
    // C++ function of this program: the saved model works in this process only.
    void record(const Plan& plan, Report& report) const;

private:
    Compilation& of_kernel(const MappedKernel& kernel, const torch::jit::Module& module);
    Compilation& of_source(const FunctionCandidate& source, const torch::jit::Module& module);
    // Records a kernel and those whose functions its layers call: the model may name the operators
    // of each.
    void record(const MappedKernel& kernel, std::set<std::string>& recorded) const;
    const MappedKernel* dependency_of(const MappedKernel& kernel, const std::string& repo_id);

    const Job& job_;
    // Key: build id, and the compilation unit; classes of one model may live in several.
    std::map<std::pair<std::string, const void*>, std::shared_ptr<Compilation>> compilations_;
    // By build id: what a build's get_kernel_dep has asked for.
    std::map<std::string, std::set<const MappedKernel*>> dependencies_;
};

}  // namespace twinkle::runtime
