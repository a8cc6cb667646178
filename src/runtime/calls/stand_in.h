#pragma once
// A function that takes the place of another in the calls of a model: with its parameters and its
// result, made of what stands for it.

#include "runtime/source/substitutes.h"

#include <torch/script.h>

#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

// A call: the function, and the arguments that are constants there.
struct CallShape {
    torch::jit::Function* function = nullptr;
    std::vector<std::optional<c10::IValue>> constants;

    // Equal for calls that one stand-in serves.
    std::string key() const;
};

// Numbers, flags, texts and None; all of what a call passes as such.
CallShape shape_of(const torch::jit::Node& call);

// Defines `name` (mangled where it is taken) in `unit`. An argument goes to the parameter of its
// name, else to the one at its place; what a parameter does not take must be what the call would
// get by default. What writes into one more tensor in front is given one like the result. The error
// says why none of the substitutes can stand for the function.
tl::expected<torch::jit::Function*, std::string> make_stand_in(torch::jit::CompilationUnit& unit,
                                                               const c10::QualifiedName& name,
                                                               const CallShape& call,
                                                               const Substitutes& substitutes);

}  // namespace twinkle::runtime
