#pragma once
// The methods that a call of an instance may run.

#include <torch/csrc/jit/api/module.h>

#include <vector>

namespace twinkle::runtime {

// forward; a traced instance that is called several times has forward1, forward2, … as well.
std::vector<torch::jit::Function*> forward_methods(const c10::ClassTypePtr& type);

}  // namespace twinkle::runtime
