#pragma once
// The code of the kernels that replace sites, loaded when the first site needs it.

#include "runtime/graph/keep_reason.h"
#include "runtime/plan/job.h"
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

    // The kernels that a build's get_kernel_dep has asked for.
    std::set<const MappedKernel*> dependencies_of(const MappedKernel& kernel) const;

private:
    Compilation& of_kernel(const MappedKernel& kernel, const torch::jit::Module& module);
    Compilation& of_source(const FunctionCandidate& source, const torch::jit::Module& module);
    const MappedKernel* dependency_of(const MappedKernel& kernel, const std::string& repo_id);

    const Job& job_;
    // Key: build id, and the compilation unit; classes of one model may live in several.
    std::map<std::pair<std::string, const void*>, std::shared_ptr<Compilation>> compilations_;
    std::map<std::string, std::set<const MappedKernel*>> dependencies_;  // by build id
};

}  // namespace twinkle::runtime
