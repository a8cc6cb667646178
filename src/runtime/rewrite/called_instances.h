#pragma once
// The instances of a model that its own methods call. A layer that takes the place of a module may
// do what modules inside of it did, and nothing calls those any more.

#include <torch/script.h>

#include <unordered_set>

namespace twinkle::runtime {

class CalledInstances {
public:
    // Follows the calls of every method of the root. What cannot be followed counts as called.
    explicit CalledInstances(const torch::jit::Module& root);

    bool contains(const torch::jit::Module& instance) const;

private:
    std::unordered_set<const void*> called_;  // objects
    bool all_ = false;
};

}  // namespace twinkle::runtime
