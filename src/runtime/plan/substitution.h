#pragma once
// What can stand for a function: the substitutes that a choice names, had once for each unit that
// code is compiled into.

#include "runtime/layers/operator_check.h"
#include "runtime/plan/kernel_code.h"
#include "runtime/source/substitutes.h"

#include <map>
#include <optional>
#include <string>
#include <tuple>

namespace twinkle::runtime {

class Substitution {
public:
    Substitution(const Job& job, KernelCode& code) : job_(job), code_(code) {}

    // `what` they stand for, for the observer.
    const tl::expected<Substitutes, KeepReason>& of(const Choice& choice,
                                                    const torch::jit::Module& module,
                                                    const c10::FunctionSchema& stands_for,
                                                    const std::string& what);

    // Throws Error(refused) for a C++ function that cannot be called as what it stands for: the
    // model would only show it when it runs.
    void refuse_other_arity(const Choice& choice, const c10::FunctionSchema& stands_for,
                            const std::string& what) const;

    // Why what was made of a choice cannot run, or be trained, where the model will be.
    std::optional<KeepReason> unfit(const Choice& choice, torch::jit::Function& stand_in) const;

private:
    tl::expected<Substitutes, KeepReason> make(const Choice& choice,
                                               const torch::jit::Module& module,
                                               const c10::FunctionSchema& stands_for,
                                               const std::string& what);

    const Job& job_;
    KernelCode& code_;
    // By compilation unit, candidate, and for a C++ function the types of its arguments.
    std::map<std::tuple<const void*, const FunctionCandidate*, std::string>,
             tl::expected<Substitutes, KeepReason>>
        known_;
};

// What will be asked of the code that replaces something.
OperatorUse operator_use(const Job& job);

}  // namespace twinkle::runtime
