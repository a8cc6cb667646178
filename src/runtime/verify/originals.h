#pragma once
// The original model in the forms that a kernelized one is compared with, opened from its file anew
// each time, so that nothing is shared with what is compared. For the child: on a GPU, if the
// context names one.

#include "runtime/verify/call_recorder.h"
#include "runtime/verify/verification_context.h"

#include <torch/script.h>

#include <string>
#include <vector>

namespace twinkle::runtime {

// What the kernels stand for: the original, converted where the kernelized model was, and with a
// call wherever one of the sites was.
torch::jit::Module open_original(const VerificationContext& context,
                                 const std::vector<std::string>& sites = {});
// What is to compute in double, with the weights that the original has, or got.
torch::jit::Module open_reference(const VerificationContext& context,
                                  const std::vector<std::string>& sites);
// The whole original in double.
torch::jit::Module open_exact(const VerificationContext& context);
// With every result rounded to the dtype of the context, which must have one (rounded_results.h).
torch::jit::Module open_rounded(const VerificationContext& context);

// The model that is compared, and a context with its inputs, where the context says.
torch::jit::Module in_place(const torch::jit::Module& model, const VerificationContext& context);
VerificationContext in_place(const VerificationContext& context);

// A copy that holds its weights in double.
torch::jit::Module in_double(const torch::jit::Module& module);

// Calls of the kernelized model that the original has inlined, as what they are there.
InlinedSites inlined_sites(const torch::jit::Module& kernelized, const torch::jit::Module& original,
                           const std::vector<std::string>& sites);
// A site of the original, by itself.
torch::jit::Module site_of(const torch::jit::Module& model, const InlinedSites& inlined,
                           const std::string& site);

}  // namespace twinkle::runtime
