#pragma once
// The gradient of a normalization's x, row by row; keeps the values of each row that the weight's
// gradient needs.

#include "cuda/norm_any.h"

namespace twinkle_pack::cuda {
namespace {

// Per row: scale and mean (high and low part), for the sums over rows.
constexpr int kept_numbers = 3;

template <class V>
__device__ __forceinline__ void keep(void* kept, uint64_t row, const Normal<V>& normal) {
    using reg = typename V::reg;
    reg* const to = static_cast<reg*>(kept) + row * kept_numbers;
    to[0] = normal.scale.high;
    to[1] = normal.minus_mean.high;
    to[2] = normal.minus_mean.low;
}

template <class V>
__device__ __forceinline__ Normal<V> kept_normal(const void* kept, uint64_t row) {
    using reg = typename V::reg;
    const reg* const from = static_cast<const reg*>(kept) + row * kept_numbers;
    return {{from[0], 0}, {from[1], from[2]}};
}

template <class X, class W, class G>
struct Backward {
    template <int held>
    struct Held {
        static constexpr int others =
            held * ((sizeof(W) > sizeof(X) ? 2 : 1) + (sizeof(G) > sizeof(X) ? 2 : 1));
        // x is held in the precision of the computation.
        static constexpr unsigned threads =
            most_threads_holding(held * vector_bytes / static_cast<int>(sizeof(X)) + 4 * others);
    };
};

// Tensors: grad, x, the gradient of x.
template <Norm norm, class X, class W, class G, int held>
__global__ void __launch_bounds__(Backward<X, W, G>::template Held<held>::threads)
    norm_gradient_rows(Places<3, uint32_t, few_dims> places, RowsOf<NumberOf<X>> all,
                       AffineOf<NumberOf<X>> affine, void* kept) {
    using V = typename ComputedIn<X>::type;
    using reg = typename V::reg;
    constexpr int n = vector_bytes / sizeof(X);
    __shared__ GatheredFrom<Team::any> gathered;
    __shared__ reg fourth[warp], fifth[warp];
    const Seat thread = Seat::of<Team::any>(all);
    const Share<Team::any, 3> share(thread, all, places);
    Loaded<X, n> loaded_x[held] = {};
    Loaded<G, n> loaded_grad[held];
    Loaded<W, n> loaded_weight[held];
#pragma unroll
    for (int j = 0; j < held; ++j) {
        if (!share.is_mine(j)) continue;
        loaded_x[j] = share.template load_from<X, n>(1, j);
        loaded_grad[j] = share.template load_from<G, n>(0, j);
        if (affine.weight) loaded_weight[j] = share.template load_shared<W, n>(affine.weight, j);
    }
    Pack<X, n> x[held];
    Pack<G, n> grad[held];
    Pack<W, n> weight[held];
#pragma unroll
    for (int j = 0; j < held; ++j) {
        x[j] = unpacked<X, n>(loaded_x[j]);
        grad[j] = unpacked<G, n>(loaded_grad[j]);
        weight[j] = unpacked<W, n>(loaded_weight[j]);
    }
    const Normal<V> normal = normal_of<norm, V>(x, share, all, gathered, affine.eps);
    keep_packed(x);
    const auto difference_at = [&](int j, int e) { return normal.difference(number_at(x[j], e)); };

    const auto weight_at = [&](int j, int e) {
        return affine.weight ? number_at(weight[j], e) + affine.offset : reg(1);
    };
    reg products = 0, weighted = 0;
#pragma unroll
    for (int j = 0; j < held; ++j) {
        if (!share.is_mine(j)) continue;
#pragma unroll
        for (int e = 0; e < n; ++e) {
            const reg part = V::mul(number_at(grad[j], e), weight_at(j, e));
            products = V::fma(part, difference_at(j, e), products);
            weighted += part;
        }
    }
    products = sum_over_lanes(products, all.lanes, fourth);
    if constexpr (norm == Norm::layer)
        weighted = sum_over_lanes(weighted, all.lanes, fifth);
    else
        weighted = 0;
    const RowGradient<V> gradient =
        row_gradient<V>(normal.scale.high, products, weighted, all.length);
    keep_packed(x);
    keep_packed(grad);
    if (kept && share.active && thread.lane == 0) keep(kept, thread.row, normal);
#pragma unroll
    for (int j = 0; j < held; ++j) {
        if (!share.is_mine(j)) continue;
        reg results[n];
#pragma unroll
        for (int e = 0; e < n; ++e)
            results[e] = gradient.of_x(number_at(grad[j], e), difference_at(j, e), weight_at(j, e));
        share.store_to(2, j, packed<X>(results));
    }
}

struct AnyGradient {
    Elements grad, x, grad_x, weight;
    uint64_t rows, n;
    unsigned lanes;
};

template <Norm norm, class Number>
__global__ void __launch_bounds__(any_threads)
    norm_gradient_any(Places<3, uint64_t, all_dims> places, AnyGradient all, Length<Number> size,
                      Affine affine, void* kept) {
    using V = Scalar<Number, false>;
    __shared__ Number sums[5][warp];
    const Lane thread(all.lanes);
    const bool active = thread.row < all.rows;
    const uint64_t stop = active ? all.n : 0;
    char* at[3];
    places.find_row(active ? thread.row : 0, at);
    const auto eps = static_cast<Number>(affine.eps);
    const auto x_at = [&](uint64_t i) { return all.x.get<Number>(at[1], i); };
    Normal<V> normal;
    Number sum = 0, squares = 0, differences = 0;
    if constexpr (norm == Norm::rms) {
        for (uint64_t i = thread.lane; i < stop; i += all.lanes)
            squares = V::fma(x_at(i), x_at(i), squares);
        normal =
            Normal<V>::root_mean_square(sum_over_lanes(squares, all.lanes, sums[0]), size, eps);
    } else {
        for (uint64_t i = thread.lane; i < stop; i += all.lanes) sum += x_at(i);
        const Number mean = size.template of<V>(sum_over_lanes(sum, all.lanes, sums[0]));
        for (uint64_t i = thread.lane; i < stop; i += all.lanes) {
            const Number difference = x_at(i) - mean;
            differences += difference;
            squares = V::fma(difference, difference, squares);
        }
        normal = Normal<V>::layer(mean, sum_over_lanes(differences, all.lanes, sums[1]),
                                  sum_over_lanes(squares, all.lanes, sums[2]), size, eps);
    }
    const auto weight_at = [&](uint64_t i) {
        return affine.weight ? all.weight.get<Number>(static_cast<const char*>(affine.weight), i) +
                                   static_cast<Number>(affine.offset)
                             : Number(1);
    };
    Number products = 0, weighted = 0;
    for (uint64_t i = thread.lane; i < stop; i += all.lanes) {
        const Number part = V::mul(all.grad.get<Number>(at[0], i), weight_at(i));
        products = V::fma(part, normal.difference(x_at(i)), products);
        weighted += part;
    }
    products = sum_over_lanes(products, all.lanes, sums[3]);
    weighted = sum_over_lanes(weighted, all.lanes, sums[4]);
    if constexpr (norm == Norm::rms) weighted = 0;
    const RowGradient<V> gradient = row_gradient<V>(normal.scale.high, products, weighted, size);
    if (kept && active && thread.lane == 0) keep(kept, thread.row, normal);
    for (uint64_t i = thread.lane; i < stop; i += all.lanes)
        store_as<Number>(all.grad_x.dtype, at[2] + static_cast<int64_t>(i) * all.grad_x.step,
                         gradient.of_x(all.grad.get<Number>(at[0], i), normal.difference(x_at(i)),
                                       weight_at(i)));
}

}  // namespace
}  // namespace twinkle_pack::cuda
