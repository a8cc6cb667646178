#pragma once
// Changes a model as following its dtypes has shown (dtype_flow.h).

#include "runtime/convert/dtype_flow.h"
#include "twinkle/report.h"

namespace twinkle::runtime {

// Weights, constants and what has to be rounded, in place; says what was done.
ConstantReport rewrite_dtypes(torch::jit::Module& model, const DtypeSettings& settings,
                              const DtypeFlow& flow);

// A constant tensor that may be a weight: freezing puts them into the code.
bool is_weight_constant(const torch::jit::Node* node);

}  // namespace twinkle::runtime
