#include "runtime/plan/kernel_code.h"

#include "runtime/graph/format.h"
#include "runtime/model/marker.h"
#include "runtime/model/program_function.h"
#include "runtime/selection/modes.h"
#include "runtime/source/single_file.h"
#include "twinkle/error.h"

namespace twinkle::runtime {

tl::expected<Compilation*, KeepReason> KernelCode::of(const Choice& choice,
                                                      const torch::jit::Module& module) {
    try {
        return choice.kernel != nullptr ? &of_kernel(*choice.kernel, module)
                                        : &of_source(*choice.implementation(), module);
    } catch (const Error& error) {
        const bool absent =
            error.code() == ErrorCode::not_found || error.code() == ErrorCode::unreachable;
        if ((error.code() != ErrorCode::refused && !absent) ||
            !job_.options.fallback.contains(Fallback::cannot_load)) {
            throw;
        }
        return tl::make_unexpected(
            KeepReason{Fallback::cannot_load, error.details().what + ": " + error.details().why});
    }
}

Compilation& KernelCode::of_kernel(const MappedKernel& kernel, const torch::jit::Module& module) {
    const auto unit = module.type()->compilation_unit();
    const std::pair key{kernel.build_id(), unit.get()};
    if (const auto known = compilations_.find(key); known != compilations_.end()) {
        return *known->second;
    }
    job_.observe("load-kernel", kernel.name);
    const auto loaded = job_.provider(kernel);
    auto compilation = std::make_shared<Compilation>(
        std::make_shared<KernelPackage>(loaded->sources), unit, wants_training(job_.context.mode));
    compilation->set_variant(kernel.variant);
    compilation->set_dependencies([this, &kernel](const std::string& repo_id) {
        const MappedKernel* found = dependency_of(kernel, repo_id);
        return found ? std::make_shared<KernelPackage>(job_.provider(*found)->sources) : nullptr;
    });
    return *compilations_.emplace(key, std::move(compilation)).first->second;
}

Compilation& KernelCode::of_source(const FunctionCandidate& source,
                                   const torch::jit::Module& module) {
    const auto unit = module.type()->compilation_unit();
    const std::pair key{fmt::format("source {}", fmt::ptr(&source)), unit.get()};
    if (const auto known = compilations_.find(key); known != compilations_.end()) {
        return *known->second;
    }
    const auto package =
        std::make_shared<KernelPackage>(single_file_package(source.file, source.source));
    auto compilation =
        std::make_shared<Compilation>(package, unit, wants_training(job_.context.mode));
    return *compilations_.emplace(key, std::move(compilation)).first->second;
}

// The kernel of this repository that the mapping has for the device; null if there are several.
const MappedKernel* KernelCode::dependency_of(const MappedKernel& kernel,
                                              const std::string& repo_id) {
    const MappedKernel* found = nullptr;
    for (const MappedKernel& one : job_.mapping.kernels) {
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

void KernelCode::record(const MappedKernel& kernel, std::set<std::string>& recorded) const {
    const std::string build_id = kernel.build_id();
    if (!recorded.insert(build_id).second) {
        return;
    }
    if (!kernel.op_namespace.empty()) {
        mark_model(job_.model, {kernel.name, kernel.variant, kernel.op_namespace, build_id});
    }
    const auto known = dependencies_.find(build_id);
    if (known == dependencies_.end()) {
        return;
    }
    for (const MappedKernel* dependency : known->second) {
        record(*dependency, recorded);
    }
}

void KernelCode::record(const Plan& plan, Report& report) const {
    std::set<std::string> recorded;
    std::set<std::string> functions;
    for (const Site& site : plan.sites) {
        if (!site.is_replaced()) {
            continue;
        }
        for (const Choice& choice : site.choices()) {
            const FunctionCandidate* implementation = choice.implementation();
            if (choice.kernel != nullptr) {
                record(*choice.kernel, recorded);
            } else if (implementation != nullptr && job_.natives.contains(implementation->op)) {
                const auto* function = choice.as<FunctionChoice>();
                functions.insert(function != nullptr ? function->binding->full_name()
                                                     : choice.bound_name());
            }
        }
    }
    for (const std::string& function : functions) {
        mark_program_function(job_.model, function);
        report.warnings.push_back(function +
                                  " is a C++ function of this program: saved, the model can be "
                                  "loaded by this process alone");
    }
}

}  // namespace twinkle::runtime
