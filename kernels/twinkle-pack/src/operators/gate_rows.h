#pragma once
// Common code of the gates, for two tensors and for two halves of one.

#include "isa/functions.h"
#include "operator.h"
#include "row_walk.h"

namespace twinkle_pack {

// The two halves of a tensor's rows.
struct Halves {
    Placed gate, up;

    Halves(const Placed& whole, int64_t half, bool gate_first) : gate(whole), up(whole) {
        Placed& second = gate_first ? up : gate;
        second.data = static_cast<const char*>(second.data) + half * second.element_size;
    }
};

// act(gate) * up for all rows; bypasses the cache if the tensors exceed it.
void compute_gated(Activation activation, DType dtype, const RowShape<3>& gate_up_result,
                   ParallelFor parallel);
void compute_gated_backward(Activation activation, DType dtype,
                            const RowShape<5>& grad_gate_up_results, ParallelFor parallel);

}  // namespace twinkle_pack
