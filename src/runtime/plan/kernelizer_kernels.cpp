// The kernels that sites are replaced by: each is loaded when the first site needs it, and noted in
// the model.
#include "runtime/model/marker.h"
#include "runtime/model/program_function.h"
#include "runtime/plan/kernelizer.h"
#include "runtime/selection/modes.h"
#include "twinkle/error.h"

namespace twinkle::runtime {

// The compilation of the chosen kernel or source, or why it cannot be had.
tl::expected<Compilation*, KeepReason> Kernelizer::loaded(const Choice& choice,
                                                          const torch::jit::Module& module) {
    try {
        return choice.kernel != nullptr ? &compilation_for(*choice.kernel, module)
                                        : &compilation_for(*choice.implementation, module);
    } catch (const Error& error) {
        const bool absent =
            error.code() == ErrorCode::not_found || error.code() == ErrorCode::unreachable;
        if ((error.code() != ErrorCode::refused && !absent) ||
            !options_.fallback.contains(Fallback::cannot_load)) {
            throw;
        }
        return tl::make_unexpected(
            KeepReason{Fallback::cannot_load, error.details().what + ": " + error.details().why});
    }
}

Compilation& Kernelizer::compilation_for(const MappedKernel& kernel,
                                         const torch::jit::Module& module) {
    const auto unit = module.type()->compilation_unit();
    const std::pair key{kernel.build_id(), unit.get()};
    if (const auto known = compilations_.find(key); known != compilations_.end()) {
        return *known->second;
    }
    if (options_.observer) {
        options_.observer("load-kernel", kernel.name);
    }
    const auto loaded = provider_(kernel);
    auto compilation = std::make_shared<Compilation>(
        std::make_shared<KernelPackage>(loaded->sources), unit, wants_training(context_.mode));
    compilation->set_variant(kernel.variant);
    compilation->set_dependencies([this, &kernel](const std::string& repo_id) {
        const MappedKernel* found = dependency_of(kernel, repo_id);
        return found ? std::make_shared<KernelPackage>(provider_(*found)->sources) : nullptr;
    });
    return *compilations_.emplace(key, std::move(compilation)).first->second;
}

// The kernel of this repository that the mapping has for the device; of several none can be told.
const MappedKernel* Kernelizer::dependency_of(const MappedKernel& kernel,
                                              const std::string& repo_id) {
    const MappedKernel* found = nullptr;
    for (const MappedKernel& one : mapping_.kernels) {
        if (one.repo_id != repo_id ||
            (one.device != kernel.device && one.device != "any" && kernel.device != "any")) {
            continue;
        }
        if (found != nullptr) {
            throw CannotCompile("get_kernel_dep(\"" + repo_id +
                                "\"): the mapping has several versions of it: " + found->name +
                                ", " + one.name);
        }
        found = &one;
    }
    if (found != nullptr) {
        dependencies_[kernel.build_id()].insert(found);
    }
    return found;
}

// A kernel and those whose functions its layers call: the model may name the operators of each.
void Kernelizer::mark_used_kernel(const MappedKernel& kernel, std::set<std::string>& used) {
    const std::string build_id = kernel.build_id();
    if (!used.insert(build_id).second) {
        return;
    }
    if (!kernel.op_namespace.empty()) {
        mark_model(model_, {kernel.name, kernel.variant, kernel.op_namespace, build_id});
    }
    for (const MappedKernel* dependency : dependencies_[build_id]) {
        mark_used_kernel(*dependency, used);
    }
}

void Kernelizer::mark_used_kernels(Report& report) {
    std::set<std::string> used;
    std::set<std::string> functions;
    for (const Site& site : sites_) {
        if (site.report.status != SiteStatus::replaced) {
            continue;
        }
        const Choice& choice = *site.choice;
        if (choice.kernel != nullptr) {
            mark_used_kernel(*choice.kernel, used);
        } else if (choice.implementation != nullptr &&
                   natives_.contains(choice.implementation->op)) {
            functions.insert(choice.pattern != nullptr ? choice.pattern->name
                                                       : choice.function->full_name());
        }
    }
    for (const std::string& function : functions) {
        mark_program_function(model_, function);
        report.warnings.push_back(function +
                                  " is a C++ function of this program: saved, the model can be "
                                  "loaded by this process alone");
    }
}

}  // namespace twinkle::runtime
