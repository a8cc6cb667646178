#pragma once
// The original model in the forms that a kernelized one is compared with. Each is opened from the
// file anew, so that it shares nothing with what is compared. For the child: on a GPU, if the
// context names one.

#include "runtime/verify/call_recorder.h"
#include "runtime/verify/verification_context.h"

#include <torch/script.h>

#include <string>
#include <vector>

namespace twinkle::runtime {

// The model that the kernels replace: the original, converted if the kernelized model was, with a
// call at each of the sites.
torch::jit::Module open_original(const VerificationContext& context,
                                 const std::vector<std::string>& sites = {});
// The module that will compute in double, with the original's weights, rounded to the context's
// dtype if there is one.
torch::jit::Module open_reference(const VerificationContext& context,
                                  const std::vector<std::string>& sites);
// The whole original in double.
torch::jit::Module open_exact(const VerificationContext& context);
// The original with every result rounded to the context's dtype, which must be set
// (rounded_results.h).
torch::jit::Module open_rounded(const VerificationContext& context);

// The model that is compared, and a context with its inputs, on the context's device.
torch::jit::Module in_place(const torch::jit::Module& model, const VerificationContext& context);
VerificationContext in_place(const VerificationContext& context);

// The model frozen, to run there.
torch::jit::Module frozen_for(const torch::jit::Module& model, const VerificationContext& context);

// A copy with its weights in double.
torch::jit::Module in_double(const torch::jit::Module& module);

// Calls of the kernelized model that the original has inlined, with their regions in the original.
InlinedSites inlined_sites(const torch::jit::Module& kernelized, const torch::jit::Module& original,
                           const std::vector<std::string>& sites);
// One site of the original as a module.
torch::jit::Module site_of(const torch::jit::Module& model, const InlinedSites& inlined,
                           const std::string& site);

}  // namespace twinkle::runtime
