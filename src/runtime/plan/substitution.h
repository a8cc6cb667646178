#pragma once
// The substitutes for a function that a choice names, compiled once for each compilation
// unit.

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

    // `what` they replace, for the observer.
    const tl::expected<Substitutes, KeepReason>& of(const Choice& choice,
                                                    const torch::jit::Module& module,
                                                    const c10::FunctionSchema& stands_for,
                                                    const std::string& what);

    // Throws Error(refused) for a C++ function that cannot be called like the function it replaces:
    // the model would show that only when it runs.
    void refuse_other_arity(const Choice& choice, const c10::FunctionSchema& stands_for,
                            const std::string& what) const;

    // Why the stand-in made of a choice cannot run, or be trained, where the model will be.
    std::optional<KeepReason> unfit(const Choice& choice, torch::jit::Function& stand_in) const;

private:
    tl::expected<Substitutes, KeepReason> make(const Choice& choice,
                                               const torch::jit::Module& module,
                                               const c10::FunctionSchema& stands_for,
                                               const std::string& what);

    const Job& job_;
    KernelCode& code_;
    // Key: compilation unit, candidate, and for a C++ function the types of its arguments.
    std::map<std::tuple<const void*, const FunctionCandidate*, std::string>,
             tl::expected<Substitutes, KeepReason>>
        known_;
};

// How the code of a replacement will be used.
OperatorUse operator_use(const Job& job);

}  // namespace twinkle::runtime
