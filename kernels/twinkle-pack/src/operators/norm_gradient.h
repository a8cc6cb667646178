#pragma once
// The gradients of a normalization: rows one by one, the weight's sums in parts of the rows, so
// that the result does not depend on the threads.

#include "isa/functions.h"
#include "operator.h"
#include "row_walk.h"

namespace twinkle_pack {

struct NormGradients {
    NormBackwardRow row;
    StoreSums store;
    const void* weight;
    double eps, offset;
    // Destinations of the gradients of weight and bias; null for an absent one.
    void* grad_weight;
    void* grad_bias;
};

// Tensors: grad, x, the gradient of x.
void compute_norm_gradients(const NormGradients& what, const RowShape<3>& shape,
                            ParallelFor parallel);

}  // namespace twinkle_pack
