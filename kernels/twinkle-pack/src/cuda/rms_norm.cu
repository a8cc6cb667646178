// Root mean square normalization, of x or of x + residual.
#include "cuda/families.h"
#include "cuda/norm_operators.h"

namespace twinkle_pack::cuda {
namespace {

template <class X, class W, class R, bool add>
constexpr auto rms_rows = launch_norm_rows<Norm::rms, X, W, R, add>;

// For one half precision, with weights of its own dtype or of float32.
template <class X, bool add>
bool launch_half(DType weight, DType result, const RowShape<row_tensors<add>>& shape,
                 const Affine& affine, const Queue& queue) {
    if (weight == DType::float32)
        return result == DType::float32 ? rms_rows<X, float, float, add>(shape, affine, queue)
                                        : rms_rows<X, float, X, add>(shape, affine, queue);
    return rms_rows<X, X, X, add>(shape, affine, queue);
}

template <bool add>
bool launch_fast(DType x, DType weight, DType result, const RowShape<row_tensors<add>>& shape,
                 const Affine& affine, const Queue& queue) {
    if (x == DType::float64 || weight == DType::float64) return false;
    if (x == DType::float32) {
        if (weight == DType::bfloat16)
            return rms_rows<float, BFloat16, float, add>(shape, affine, queue);
        if (weight == DType::float16)
            return rms_rows<float, Float16, float, add>(shape, affine, queue);
        return rms_rows<float, float, float, add>(shape, affine, queue);
    }
    if (weight != x && weight != DType::float32) return false;
    return x == DType::bfloat16 ? launch_half<BFloat16, add>(weight, result, shape, affine, queue)
                                : launch_half<Float16, add>(weight, result, shape, affine, queue);
}

template <bool add>
void rms_norm(const Inputs& in, const Plan& plan, void* const* results, const Queue& queue) {
    const View &x = in.tensors[0], &weight = in.tensors[add ? 2 : 1];
    if (x.elements() == 0) return;
    const RowShape<row_tensors<add>> shape = rows_of<add>(in, plan, results);
    const double offset = weight.is_there() ? in.numbers[1] : 0;
    const Affine affine{weight.data, nullptr, in.numbers[0], offset, in.numbers[2] == 0};
    const DType weight_dtype = dtype_of(weight.is_there() ? weight : x);
    if (is_dense(weight) &&
        launch_fast<add>(dtype_of(x), weight_dtype, plan.results[0].dtype, shape, affine, queue))
        return;
    launch_any<Norm::rms, add>(shape, in, plan, weight, View(), affine, queue);
}

}  // namespace

KernelList rms_norm_kernels() {
    static const Kernel all[] = {{"rms_norm", rms_norm<false>}, {"add_rms_norm", rms_norm<true>}};
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack::cuda
