#pragma once
// Parameters passed as inputs. A parameter that belongs to two modules (tied weights, an instance
// under two names) becomes an extra input of a traced method: the caller reads it, whatever it
// calls it. What callers pass is found by following the model's own calls.

#include "runtime/graph/model_calls.h"

#include <cstddef>
#include <map>
#include <string>

namespace twinkle::runtime {

// Inputs of a method that are parameters of the model at every call: by the name under which the
// instance has the same tensor, or empty where it has not.
using PassedInputs = std::map<std::size_t, std::string>;

class PassedParameters {
public:
    // Follows the calls of every method of the root.
    explicit PassedParameters(const torch::jit::Module& root) : calls_(root) {}

    // The parameters that a method of this instance is passed, by input (self is 0).
    PassedInputs of(const torch::jit::Module& instance, const std::string& method) const;
    // The same by forward method (forward_methods.h).
    std::map<std::string, PassedInputs> of(const torch::jit::Module& instance) const;

private:
    ModelCalls calls_;
};

}  // namespace twinkle::runtime
