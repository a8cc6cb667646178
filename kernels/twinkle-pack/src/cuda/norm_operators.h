#pragma once
// Common code of rms_norm and layer_norm between an operator's call and its kernels.

#include "cuda/norm_any.h"

namespace twinkle_pack::cuda {
namespace {

template <bool add>
RowShape<row_tensors<add>> rows_of(const Inputs& in, const Plan& plan, void* const* results) {
    const View& x = in.tensors[0];
    const Placed result = placed(plan.results[0], results[0]);
    if constexpr (add)
        return RowShape<4>(
            x.sizes, plan.order,
            {placed(x), placed(in.tensors[1]), result, placed(plan.results[1], results[1])}, false);
    else
        return RowShape<2>(x.sizes, plan.order, {placed(x), result}, false);
}

inline int64_t row_stride(const View& row) {
    return row.is_there() ? row.strides[0] : 1;
}

inline bool is_dense(const View& row) {
    return !row.is_there() || row.sizes[0] < 2 || row.strides[0] == 1;
}

inline bool is_wide(const View& view) {
    return view.is_there() && dtype_of(view) == DType::float64;
}

// For calls that no faster kernel can serve.
template <Norm norm, bool add>
void launch_any(const RowShape<row_tensors<add>>& shape, const Inputs& in, const Plan& plan,
                const View& weight, const View& bias, const Affine& affine, const Queue& queue) {
    AnyNorm all{};
    all.x = elements_of(in.tensors[0], 1);
    all.result.dtype = plan.results[0].dtype;
    if constexpr (add) all.residual.dtype = all.sum.dtype = all.x.dtype;
    all.weight = elements_of(weight, row_stride(weight));
    all.bias = elements_of(bias, row_stride(bias));
    if (all.x.dtype == DType::float64 || is_wide(weight) || is_wide(bias))
        launch_norm_any<norm, double, add>(shape, all, affine, queue);
    else
        launch_norm_any<norm, float, add>(shape, all, affine, queue);
}

}  // namespace
}  // namespace twinkle_pack::cuda
