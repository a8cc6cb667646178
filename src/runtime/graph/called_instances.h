#pragma once
// The instances of a model that its own methods call. A layer that takes the place of a module may
// do what modules inside of it did, and nothing calls those any more.

#include <torch/script.h>

#include <set>
#include <string>
#include <unordered_set>
#include <utility>

namespace twinkle::runtime {

class CalledInstances {
public:
    // Follows the calls of every method of the root. What cannot be followed counts as called.
    explicit CalledInstances(const torch::jit::Module& root);

    bool contains(const torch::jit::Module& instance) const;
    // A method of it; a hook is called where its instance is.
    bool contains(const torch::jit::Module& instance, const std::string& method) const;

private:
    std::unordered_set<const void*> called_;  // objects
    std::set<std::pair<const void*, std::string>> methods_;
    bool all_ = false;
};

}  // namespace twinkle::runtime
