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
    // Where the gradients of weight and bias go; null for one that is not there.
    void* grad_weight;
    void* grad_bias;
};

// grad, x, the gradient of x
void compute_norm_gradients(const NormGradients& what, const RowShape<3>& shape,
                            ParallelFor parallel);

}  // namespace twinkle_pack
