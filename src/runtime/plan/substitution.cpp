#include "runtime/plan/substitution.h"

#include "runtime/graph/format.h"
#include "runtime/selection/modes.h"
#include "runtime/source/single_file.h"
#include "twinkle/error.h"

namespace twinkle::runtime {

OperatorUse operator_use(const Job& job) {
    return {job.context.device, wants_training(job.context.mode)};
}

const tl::expected<Substitutes, KeepReason>& Substitution::of(const Choice& choice,
                                                              const torch::jit::Module& module,
                                                              const c10::FunctionSchema& stands_for,
                                                              const std::string& what) {
    const FunctionCandidate* candidate = choice.implementation();
    const bool native = job_.natives.contains(candidate->op);
    const std::tuple key(static_cast<const void*>(module.type()->compilation_unit().get()),
                         candidate, native ? c10::str(stands_for) : "");
    auto known = known_.find(key);
    if (known == known_.end()) {
        known = known_.emplace(key, make(choice, module, stands_for, what)).first;
    }
    return known->second;
}

tl::expected<Substitutes, KeepReason> Substitution::make(const Choice& choice,
                                                         const torch::jit::Module& module,
                                                         const c10::FunctionSchema& stands_for,
                                                         const std::string& what) {
    const FunctionCandidate& candidate = *choice.implementation();
    Compilation* compilation = nullptr;
    if (choice.kernel != nullptr || candidate.op.empty()) {
        const auto had = code_.of(choice, module);
        if (!had) {
            return tl::make_unexpected(had.error());
        }
        compilation = *had;
    }
    job_.observe("compile", what);
    const auto native = job_.natives.find(candidate.op);
    auto substitutes = native != job_.natives.end()
                           ? native_substitutes(candidate.op.substr(candidate.op.find("::") + 2),
                                                native->second, stands_for)
                       : !candidate.op.empty() ? operator_substitutes(candidate.op)
                       : choice.kernel != nullptr
                           ? package_substitutes(*compilation, candidate.function)
                           : package_substitutes(*compilation, module_name_of(candidate.file) +
                                                                   "." + candidate.function);
    if (!substitutes) {
        return tl::make_unexpected(
            KeepReason{candidate.op.empty() ? Fallback::cannot_compile : Fallback::cannot_load,
                       substitutes.error()});
    }
    return *std::move(substitutes);
}

void Substitution::refuse_other_arity(const Choice& choice, const c10::FunctionSchema& stands_for,
                                      const std::string& what) const {
    const auto native = job_.natives.find(choice.implementation()->op);
    if (native == job_.natives.end() || !native->second.parameters()) {
        return;
    }
    const auto& parameters = *native->second.parameters();
    if (parameters.size() == stands_for.arguments().size()) {
        return;
    }
    throw Error(
        ErrorCode::refused,
        {.what = fmt::format("the C++ function that is registered for {} takes {} arguments, "
                             "not {}",
                             what, parameters.size(), stands_for.arguments().size()),
         .where = "",
         .why = fmt::format("the model calls {}; the C++ function takes ({})", c10::str(stands_for),
                            fmt::join(parameters, ", ")),
         .hint = "register a function with the parameters of what it stands for"});
}

std::optional<KeepReason> Substitution::unfit(const Choice& choice,
                                              torch::jit::Function& stand_in) const {
    const auto native = job_.natives.find(choice.implementation()->op);
    if (wants_training(job_.context.mode) && native != job_.natives.end() &&
        !native->second.is_differentiable()) {
        return KeepReason{Fallback::no_compatible_mode,
                          native->second.name() + " records no gradients"};
    }
    return unusable_operator(stand_in, operator_use(job_));
}

}  // namespace twinkle::runtime
