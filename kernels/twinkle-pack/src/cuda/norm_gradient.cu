// The gradients of the normalizations.
#include "cuda/families.h"
#include "cuda/norm_operators.h"
#include "cuda/weight_gradient.h"

namespace twinkle_pack::cuda {
namespace {

// The arguments of a call, and values derived from them.
struct Call {
    const View &grad, &x, &weight;
    RowShape<3> shape;
    Affine affine;
    Parts parts;
    Sums sums;
    bool wide;
    const Queue& queue;

    Call(const Inputs& in, const Plan& plan, void* const* results, const Affine& with,
         const Queue& on)
        : grad(in.tensors[0]),
          x(in.tensors[1]),
          weight(in.tensors[2]),
          shape(x.sizes, plan.order, {placed(grad), placed(x), placed(plan.results[0], results[0])},
                false),
          affine(with),
          parts(static_cast<uint64_t>(shape.n > 0 ? shape.rows : 0)),
          sums{},
          wide(is_wide(x) || is_wide(weight) || is_wide(grad)),
          queue(on) {
        if (!weight.is_there()) return;
        sums.kept = queue.workspace;
        sums.parts = static_cast<char*>(queue.workspace) + kept_bytes(parts.rows, wide);
    }

    static uint64_t kept_bytes(uint64_t rows, bool wide) {
        return quotient_up(rows * kept_numbers * (wide ? 8 : 4), 256) * 256;
    }
};

int64_t workspace(const Inputs& in) {
    const View &grad = in.tensors[0], &x = in.tensors[1], &weight = in.tensors[2];
    const int64_t n = x.last_size();
    if (!weight.is_there() || x.elements() == 0) return 0;
    const Parts parts(static_cast<uint64_t>(x.elements() / n));
    const bool wide = is_wide(x) || is_wide(weight) || is_wide(grad);
    return static_cast<int64_t>(Call::kept_bytes(parts.rows, wide) +
                                parts.count * 2 * static_cast<uint64_t>(n) * (wide ? 8 : 4));
}

template <Norm norm, class X, class W, class G>
bool launch_rows(const Call& call) {
    constexpr int n = vector_bytes / sizeof(X);
    if (!has_few(call.shape, call.shape.rows) || !has_vectors(call.shape, n) ||
        !at_vectors(call.affine.weight) || !is_dense(call.weight))
        return false;
    const auto vectors = static_cast<uint64_t>(call.shape.n / n);
    const Split split = split_rows<Backward<X, W, G>::template Held, 4>(call.parts.rows, vectors,
                                                                        card(call.queue.device));
    if (split.held == 0) return false;
    const Places<3, uint32_t, few_dims> places(call.shape, n);
    const RowsOf<NumberOf<X>> all(call.parts.rows, vectors, split, call.shape.n);
    with_held<4>(split.held, [&](auto held) {
        check_threads(split.threads,
                      Backward<X, W, G>::template Held<decltype(held)::value>::threads);
        launch(call.queue.stream, norm_gradient_rows<norm, X, W, G, decltype(held)::value>,
               split.grid, split.threads, places, all, call.affine.in<NumberOf<X>>(),
               call.sums.kept);
    });
    if (!call.sums.kept) return true;
    const Grid grid{quotient_up(vectors, column_threads), call.parts.count};
    launch(call.queue.stream, sum_columns<norm, X, G>, grid, column_threads, places, call.parts,
           call.sums, all.vectors);
    return true;
}

template <Norm norm, class X>
bool launch_half(const Call& call, DType grad) {
    const bool float_weight = call.weight.is_there() && dtype_of(call.weight) == DType::float32;
    if (call.weight.is_there() && !float_weight && dtype_of(call.weight) != dtype_of(call.x))
        return false;
    if (grad == DType::float32) {
        if constexpr (norm == Norm::rms) return launch_rows<norm, X, float, float>(call);
        return false;
    }
    return float_weight ? launch_rows<norm, X, float, X>(call) : launch_rows<norm, X, X, X>(call);
}

template <Norm norm>
bool launch_fast(const Call& call) {
    const DType x = dtype_of(call.x), grad = dtype_of(call.grad);
    if (call.wide) return false;
    if (x == DType::bfloat16) return launch_half<norm, BFloat16>(call, grad);
    if (x == DType::float16) return launch_half<norm, Float16>(call, grad);
    if (call.weight.is_there() && dtype_of(call.weight) != DType::float32) return false;
    return launch_rows<norm, float, float, float>(call);
}

template <Norm norm, class Number>
void launch_any(const Call& call) {
    check_dims(call.shape);
    AnyGradient all{};
    all.grad = {dtype_of(call.grad), call.shape.inner_step[0]};
    all.x = {dtype_of(call.x), call.shape.inner_step[1]};
    all.grad_x = {dtype_of(call.x), call.shape.inner_step[2]};
    all.weight = elements_of(call.weight, row_stride(call.weight));
    all.rows = call.parts.rows;
    all.n = static_cast<uint64_t>(call.shape.n);
    all.lanes = any_lanes(call.shape.n);
    const Places<3, uint64_t, all_dims> places(call.shape, 1);
    const Grid rows{quotient_up(all.rows, all.lanes > warp ? 1 : any_threads / all.lanes)};
    launch(call.queue.stream, norm_gradient_any<norm, Number>, rows, any_threads, places, all,
           Length<Number>(all.n), call.affine, call.sums.kept);
    if (!call.sums.kept) return;
    const Grid columns{quotient_up(all.n, column_threads), call.parts.count};
    launch(call.queue.stream, sum_columns_any<norm, Number>, columns, column_threads, places,
           call.parts, call.sums, all);
}

template <Norm norm>
void launch_all(const Call& call, DType weight_dtype, void* grad_weight, void* grad_bias) {
    if (call.shape.n == 0) return;
    if (call.parts.rows > 0 && !launch_fast<norm>(call)) {
        if (call.wide)
            launch_any<norm, double>(call);
        else
            launch_any<norm, float>(call);
    }
    if (!call.weight.is_there()) return;
    const auto n = static_cast<uint64_t>(call.shape.n);
    const Grid grid{quotient_up(n, strip), norm == Norm::layer ? 2u : 1u};
    launch(call.queue.stream, call.wide ? add_parts<double> : add_parts<float>, grid,
           strip * strip_groups, call.sums.parts, call.parts.count, n, weight_dtype, grad_weight,
           grad_bias);
}

void rms_norm_backward(const Inputs& in, const Plan& plan, void* const* results,
                       const Queue& queue) {
    const Affine affine{in.tensors[2].data, nullptr, in.numbers[0], in.numbers[1], false};
    launch_all<Norm::rms>(Call(in, plan, results, affine, queue), plan.results[1].dtype, results[1],
                          nullptr);
}

void layer_norm_backward(const Inputs& in, const Plan& plan, void* const* results,
                         const Queue& queue) {
    const Affine affine{in.tensors[2].data, nullptr, in.numbers[0], 0, false};
    launch_all<Norm::layer>(Call(in, plan, results, affine, queue), plan.results[1].dtype,
                            results[1], results[2]);
}

}  // namespace

KernelList norm_gradient_kernels() {
    static const Kernel all[] = {{"rms_norm_backward", rms_norm_backward, workspace},
                                 {"layer_norm_backward", layer_norm_backward, workspace}};
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack::cuda
