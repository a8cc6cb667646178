#pragma once
// Gives one instance a class of its own, where its class is shared and only this instance is
// treated.

#include <torch/script.h>

#include <string>

namespace twinkle::runtime {

// Clones the classes on the way from the root to `path` wherever another instance shares them, with
// their methods, and retypes the attributes that lead there. Weights are not copied. Returns the
// instance under `path`, now of a class that nobody else has. The root itself is never cloned.
torch::jit::Module give_own_class(torch::jit::Module& root, const std::string& path);

}  // namespace twinkle::runtime
