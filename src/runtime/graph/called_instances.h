#pragma once
// The instances of a model that its own methods call. A layer that takes the place of a module may
// do what modules inside of it did, and nothing calls those any more.

#include "runtime/graph/model_calls.h"

#include <string>

namespace twinkle::runtime {

class CalledInstances {
public:
    // Follows the calls of every method of the root. What cannot be followed counts as called.
    explicit CalledInstances(const torch::jit::Module& root) : calls_(root) {}

    bool contains(const torch::jit::Module& instance) const;
    // A method of it; a hook is called where its instance is.
    bool contains(const torch::jit::Module& instance, const std::string& method) const;

private:
    ModelCalls calls_;
};

}  // namespace twinkle::runtime
