#pragma once
// What the elementwise families share.

#include "isa/functions.h"
#include "memory.h"
#include "operator.h"
#include "row_walk.h"

namespace twinkle_pack {

inline Placed placed(const View& view) {
    return {view.data, view.strides, element_size(dtype_of(view))};
}

inline Placed placed(const Result& result, void* data) {
    return {data, result.strides, element_size(result.dtype)};
}

// act(gate) * up for all rows, past the cache where the tensors exceed it.
void compute_gated(Activation activation, DType dtype, const RowShape<3>& gate_up_result,
                   ParallelFor parallel);
void compute_gated_backward(Activation activation, DType dtype,
                            const RowShape<5>& grad_gate_up_results, ParallelFor parallel);

}  // namespace twinkle_pack
