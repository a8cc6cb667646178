#pragma once
// The gradients of weight and bias: sums over all rows. First each part of the rows by itself, then
// the parts, always in the same order.

#include "cuda/norm_gradient.h"

namespace twinkle_pack::cuda {
namespace {

constexpr unsigned column_threads = 128;

// How rows are divided into parts: the same on every GPU, so that results are the same.
struct Parts {
    uint64_t rows, part_rows, count;

    explicit Parts(uint64_t all_rows)
        : rows(all_rows),
          part_rows(quotient_up(all_rows, 256) > 8 ? quotient_up(all_rows, 256) : 8),
          count(quotient_up(all_rows, part_rows)) {}
};

// The workspace: the kept values of each row, then for each part n sums of the weight and n of the
// bias.
struct Sums {
    void* kept;
    void* parts;
};

// Tensors: grad, x; n columns per thread.
template <Norm norm, class X, class G>
__global__ void __launch_bounds__(column_threads)
    sum_columns(Places<3, uint32_t, few_dims> places, Parts parts, Sums sums, unsigned vectors) {
    using V = typename ComputedIn<X>::type;
    using reg = typename V::reg;
    constexpr int n = vector_bytes / sizeof(X);
    const unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= vectors) return;
    const uint64_t first = blockIdx.y * parts.part_rows;
    const uint64_t stop =
        first + parts.part_rows < parts.rows ? first + parts.part_rows : parts.rows;
    reg of_weight[n] = {}, of_bias[n] = {};
#pragma unroll 4
    for (uint64_t row = first; row < stop; ++row) {
        char* at[3];
        places.find_row(static_cast<uint32_t>(row), at);
        const Pack<X, n> x = load<X, n>(at[1] + static_cast<uint64_t>(column) * vector_bytes);
        const Pack<G, n> grad = load<G, n>(at[0] + static_cast<uint64_t>(column) * (n * sizeof(G)));
        const Normal<V> normal = kept_normal<V>(sums.kept, row);
#pragma unroll
        for (int e = 0; e < n; ++e) {
            const reg g = number_at(grad, e);
            const reg value = V::mul(normal.difference(number_at(x, e)), normal.scale.high);
            of_weight[e] = V::fma(value, g, of_weight[e]);
            if constexpr (norm == Norm::layer) of_bias[e] += g;
        }
    }
    const uint64_t all = static_cast<uint64_t>(vectors) * n;
    reg* const to = static_cast<reg*>(sums.parts) + blockIdx.y * 2 * all + column * n;
#pragma unroll
    for (int e = 0; e < n; ++e) {
        to[e] = of_weight[e];
        if constexpr (norm == Norm::layer) to[all + e] = of_bias[e];
    }
}

template <Norm norm, class Number>
__global__ void __launch_bounds__(column_threads)
    sum_columns_any(Places<3, uint64_t, all_dims> places, Parts parts, Sums sums, AnyGradient all) {
    using V = Scalar<Number, false>;
    const uint64_t column = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (column >= all.n) return;
    const uint64_t first = blockIdx.y * parts.part_rows;
    const uint64_t stop =
        first + parts.part_rows < parts.rows ? first + parts.part_rows : parts.rows;
    Number of_weight = 0, of_bias = 0;
    for (uint64_t row = first; row < stop; ++row) {
        char* at[3];
        places.find_row(row, at);
        const Normal<V> normal = kept_normal<V>(sums.kept, row);
        const Number g = all.grad.get<Number>(at[0], column);
        const Number value =
            V::mul(normal.difference(all.x.get<Number>(at[1], column)), normal.scale.high);
        of_weight = V::fma(value, g, of_weight);
        of_bias += g;
    }
    Number* const to = static_cast<Number*>(sums.parts) + blockIdx.y * 2 * all.n + column;
    to[0] = of_weight;
    if constexpr (norm == Norm::layer) to[all.n] = of_bias;
}

constexpr unsigned strip = 32, strip_groups = 8;  // columns of a block, and threads for each

// Adds the parts' sums of weight or bias (the grid's y), and rounds once.
template <class Number>
__global__ void __launch_bounds__(strip* strip_groups)
    add_parts(const void* parts, uint64_t count, uint64_t n, DType dtype, void* grad_weight,
              void* grad_bias) {
    __shared__ double groups[strip_groups][strip];
    const unsigned group = threadIdx.x / strip, place = threadIdx.x % strip;
    const uint64_t column = static_cast<uint64_t>(blockIdx.x) * strip + place;
    const Number* const from = static_cast<const Number*>(parts) + blockIdx.y * n + column;
    double sum = 0;
    if (column < n)
        for (uint64_t part = group; part < count; part += strip_groups)
            sum += static_cast<double>(from[part * 2 * n]);
    groups[group][place] = sum;
    __syncthreads();
    if (group != 0 || column >= n) return;
#pragma unroll
    for (unsigned other = 1; other < strip_groups; ++other) sum += groups[other][place];
    void* const to = blockIdx.y == 0 ? grad_weight : grad_bias;
    store_as<double>(dtype, static_cast<char*>(to) + column * bytes_of(dtype), sum);
}

}  // namespace
}  // namespace twinkle_pack::cuda
