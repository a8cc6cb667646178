#pragma once
// `grad_x = grad_y = None`, and a tensor later in a branch: the way backward functions are written.
// To TorchScript such a variable is an Optional[Tensor] that says so where it begins.

#include <torch/csrc/jit/frontend/tree_views.h>

#include <string>

namespace twinkle::runtime {

// `optional_tensor`: a name that the resolver answers with Optional[Tensor]. Variables that are
// only ever None stay as they are.
torch::jit::Def annotate_none_first(const torch::jit::Def& function,
                                    const std::string& optional_tensor);

}  // namespace twinkle::runtime
