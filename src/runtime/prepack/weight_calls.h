#pragma once
// Which weights the methods of a model's root give to operators that can have them prepacked, and
// to nothing else.

#include "runtime/prepack/prepack_operators.h"

#include <torch/script.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace twinkle::runtime {

// An attribute of an object.
using Slot = std::pair<c10::ivalue::Object*, std::size_t>;

// How a weight is to be prepacked.
struct Prepacking {
    const PrepackOperator* how = nullptr;
    std::vector<c10::IValue> arguments{};

    bool operator==(const Prepacking&) const = default;
};

// Returns them in the order of the calls. Follows all code that the methods reach, with the objects
// and constants that it is called with. None, where some of that is not to be known before it runs:
// a fork, an interface, an object that another one replaces, objects given to code in C++ or sorted
// by their own order, or more code than any model has. `operators` must outlive what is returned.
std::vector<std::pair<Slot, Prepacking>> weight_calls(const torch::jit::Module& model,
                                                      const PrepackOperators& operators);

}  // namespace twinkle::runtime
