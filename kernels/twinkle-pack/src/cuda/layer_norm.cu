// Layer normalization, of x or of x + residual.
#include "cuda/families.h"
#include "cuda/norm_operators.h"

namespace twinkle_pack::cuda {
namespace {

template <class X, class W, bool add>
constexpr auto layer_rows = launch_norm_rows<Norm::layer, X, W, X, add>;

template <class X, bool add>
bool launch_half(DType weight, const RowShape<row_tensors<add>>& shape, const Affine& affine,
                 const Queue& queue) {
    return weight == DType::float32 ? layer_rows<X, float, add>(shape, affine, queue)
                                    : layer_rows<X, X, add>(shape, affine, queue);
}

// Weight and bias have one dtype: that of x, or float32.
template <bool add>
bool launch_fast(DType x, DType weight, const RowShape<row_tensors<add>>& shape,
                 const Affine& affine, const Queue& queue) {
    switch (x) {
        case DType::float32: return layer_rows<float, float, add>(shape, affine, queue);
        case DType::bfloat16: return launch_half<BFloat16, add>(weight, shape, affine, queue);
        case DType::float16: return launch_half<Float16, add>(weight, shape, affine, queue);
        default: return false;
    }
}

template <bool add>
void layer_norm(const Inputs& in, const Plan& plan, void* const* results, const Queue& queue) {
    const View &x = in.tensors[0], &weight = in.tensors[add ? 2 : 1],
               &bias = in.tensors[add ? 3 : 2];
    if (x.elements() == 0) return;
    const RowShape<row_tensors<add>> shape = rows_of<add>(in, plan, results);
    const Affine affine{weight.data, bias.data, in.numbers[0], 0, false};
    const View& row = weight.is_there() ? weight : bias;
    if (is_dense(weight) && is_dense(bias) &&
        launch_fast<add>(dtype_of(x), dtype_of(row.is_there() ? row : x), shape, affine, queue))
        return;
    launch_any<Norm::layer, add>(shape, in, plan, weight, bias, affine, queue);
}

}  // namespace

KernelList layer_norm_kernels() {
    static const Kernel all[] = {{"layer_norm", layer_norm<false>},
                                 {"add_layer_norm", layer_norm<true>}};
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack::cuda
