#include "runtime/plan/used_kernels.h"

#include "runtime/model/marker.h"
#include "runtime/model/program_function.h"

#include <set>

namespace twinkle::runtime {

namespace {

// Marks a kernel and those whose functions its layers call: the model may name the operators of
// each.
void mark_used_kernel(const Job& job, const KernelCode& code, const MappedKernel& kernel,
                      std::set<std::string>& used) {
    const std::string build_id = kernel.build_id();
    if (!used.insert(build_id).second) {
        return;
    }
    if (!kernel.op_namespace.empty()) {
        mark_model(job.model, {kernel.name, kernel.variant, kernel.op_namespace, build_id});
    }
    for (const MappedKernel* dependency : code.dependencies_of(kernel)) {
        mark_used_kernel(job, code, *dependency, used);
    }
}

}  // namespace

void mark_used_kernels(const Job& job, const Plan& plan, const KernelCode& code, Report& report) {
    std::set<std::string> used;
    std::set<std::string> functions;
    for (const Site& site : plan.sites) {
        if (!site.is_replaced()) {
            continue;
        }
        for (const Choice& choice : site.choices()) {
            const FunctionCandidate* implementation = choice.implementation();
            if (choice.kernel != nullptr) {
                mark_used_kernel(job, code, *choice.kernel, used);
            } else if (implementation != nullptr && job.natives.contains(implementation->op)) {
                const auto* function = choice.as<FunctionChoice>();
                functions.insert(function != nullptr ? function->binding->full_name()
                                                     : choice.bound_name());
            }
        }
    }
    for (const std::string& function : functions) {
        mark_program_function(job.model, function);
        report.warnings.push_back(function +
                                  " is a C++ function of this program: saved, the model can be "
                                  "loaded by this process alone");
    }
}

}  // namespace twinkle::runtime
