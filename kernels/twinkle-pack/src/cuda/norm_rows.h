#pragma once
// Normalization of rows that are held in registers.

#include "cuda/launches.h"
#include "cuda/norm_formulas.h"
#include "cuda/rows.h"

namespace twinkle_pack::cuda {
namespace {

enum class Norm { rms, layer };

// The rows of the tensors in this order: x (residual) result (sum).
template <bool add>
constexpr int row_tensors = add ? 4 : 2;

template <class Number>
struct RowsOf {
    uint64_t rows;
    unsigned vectors, lanes;
    Length<Number> length;
};
template <class X>
using NumberOf = typename ComputedIn<X>::type::reg;

// Half precision is held as it is between passes, not as the numbers that it becomes.
template <class X, int held, int n>
__device__ __forceinline__ void keep_packed(Pack<X, n> (&x)[held]) {
    if constexpr (sizeof(X) == 2) {
#pragma unroll
        for (int j = 0; j < held; ++j)
#pragma unroll
            for (int i = 0; i < n / 2; ++i) forget(reinterpret_cast<uint32_t*>(&x[j])[i]);
    }
}

// Sums over a row. Vectors that are not the row's hold zeros.
template <Norm norm, class V, class X, int held, int n>
__device__ __forceinline__ Normal<V> normal_of(Pack<X, n> (&x)[held], unsigned mine,
                                               const RowsOf<typename V::reg>& all,
                                               const Affine& affine) {
    using reg = typename V::reg;
    __shared__ reg first[warp], second[warp];
    const reg eps = static_cast<reg>(affine.eps);
    reg sum = 0, squares = 0;
    if constexpr (norm == Norm::rms) {
#pragma unroll
        for (int j = 0; j < held; ++j)
#pragma unroll
            for (int i = 0; i < n; ++i) {
                const reg value = to_number(x[j].at[i]);
                squares = V::fma(value, value, squares);
            }
        return Normal<V>::root_mean_square(sum_over_lanes(squares, all.lanes, first), all.length,
                                           eps);
    } else {
#pragma unroll
        for (int j = 0; j < held; ++j)
#pragma unroll
            for (int i = 0; i < n; ++i) sum += to_number(x[j].at[i]);
        keep_packed(x);
        const reg mean = all.length.template of<V>(sum_over_lanes(sum, all.lanes, first));
        Pair<reg> differences{};  // their sum, which rounding the mean leaves, and their squares'
#pragma unroll
        for (int j = 0; j < held; ++j) {
            if (static_cast<unsigned>(j) >= mine) continue;
#pragma unroll
            for (int i = 0; i < n; ++i) {
                const reg difference = to_number(x[j].at[i]) - mean;
                if constexpr (V::precise) differences.first += difference;
                differences.second = V::fma(difference, difference, differences.second);
            }
        }
        if constexpr (V::precise) {
            __shared__ Pair<reg> pairs[warp];
            differences = sum_over_lanes(differences, all.lanes, pairs);
        } else {
            differences.second = sum_over_lanes(differences.second, all.lanes, second);
        }
        return Normal<V>::layer(mean, differences.first, differences.second, all.length, eps);
    }
}

// Weights and biases: ones and zeros where there are none.
template <class W, int n>
__device__ __forceinline__ Pack<W, n> load_affine(const void* from, uint64_t vector, float none) {
    if (from) return load<W, n>(static_cast<const char*>(from) + vector * sizeof(Pack<W, n>), true);
    Pack<W, n> pack;
#pragma unroll
    for (int i = 0; i < n; ++i) pack.at[i] = rounded<W>(none);
    return pack;
}

// One vector of the result.
template <Norm norm, class X, class R, class W, class V, int n>
__device__ __forceinline__ Pack<R, n> normalized(const Pack<X, n>& x, const Pack<W, n>& weight,
                                                 const Pack<W, n>& bias, const Normal<V>& normal,
                                                 const Affine& affine) {
    using reg = typename V::reg;
    reg results[n];
    if constexpr (norm == Norm::layer) {
#pragma unroll
        for (int i = 0; i < n; ++i) {
            const reg value = to_number(x.at[i]), factor = to_number(weight.at[i]);
            const reg shift = to_number(bias.at[i]);
            results[i] =
                V::precise
                    ? V::normalized(value, normal.minus_mean, normal.scale, factor, shift)
                    : V::fma(V::mul(normal.difference(value), normal.scale.high), factor, shift);
        }
    } else {
        const reg offset = static_cast<reg>(affine.offset);
        if constexpr (V::precise) {
#pragma unroll
            for (int i = 0; i < n; ++i)
                results[i] =
                    V::product(to_number(x.at[i]), normal.scale, to_number(weight.at[i]) + offset);
        } else {
#pragma unroll
            for (int i = 0; i < n; ++i) results[i] = V::mul(to_number(x.at[i]), normal.scale.high);
            if (affine.between) {
                const Pack<X, n> between = packed<X>(results);
#pragma unroll
                for (int i = 0; i < n; ++i) results[i] = to_number(between.at[i]);
            }
#pragma unroll
            for (int i = 0; i < n; ++i)
                results[i] = V::mul(results[i], to_number(weight.at[i]) + offset);
        }
    }
    return packed<R>(results);
}

// Where few vectors are held, there are few rows: weights are loaded together with x, so that less
// is waited for. Else they come from the cache when they are needed, and the registers serve more
// threads.
template <class X, bool add>
struct Forward {
    template <int held>
    struct Held {
        static constexpr bool early = held <= 2;
        static constexpr unsigned threads = held <= 2 ? 1024 : held == 4 && !add ? 768 : 512;
        // At least, on a multiprocessor.
        static constexpr unsigned blocks =
            held <= 2 || (held == 8 && add && sizeof(X) == 2) ? 1 : 2;
    };
};

template <Norm norm, class X, class W, class R, bool add, int held>
__global__ void __launch_bounds__(Forward<X, add>::template Held<held>::threads,
                                  Forward<X, add>::template Held<held>::blocks)
    norm_rows(Places<row_tensors<add>, uint32_t, few_dims> places, RowsOf<NumberOf<X>> all,
              Affine affine) {
    using V = typename ComputedIn<X>::type;
    constexpr int n = vector_bytes / sizeof(X), out = add ? 2 : 1;
    constexpr bool early = Forward<X, add>::template Held<held>::early;
    const Lane thread(all.lanes);
    const bool active = thread.row < all.rows;
    char* at[row_tensors<add>];
    places.find_row(active ? static_cast<uint32_t>(thread.row) : 0, at);

    Pack<X, n> x[held] = {};
    Pack<W, n> weight[early ? held : 1], bias[early && norm == Norm::layer ? held : 1];
    unsigned mine = 0;
#pragma unroll
    for (int j = 0; j < held; ++j) {
        const unsigned i = thread.lane + static_cast<unsigned>(j) * all.lanes;
        if (!active || i >= all.vectors) continue;
        mine = static_cast<unsigned>(j) + 1;
        x[j] = load<X, n>(at[0] + static_cast<uint64_t>(i) * vector_bytes);
        if constexpr (early) {
            weight[j] = load_affine<W, n>(affine.weight, i, 1);
            if constexpr (norm == Norm::layer) bias[j] = load_affine<W, n>(affine.bias, i, 0);
        }
    }

    // A sum is normalized as it is rounded. No more of the residual is held than x leaves room for.
    if constexpr (add) {
        constexpr int some = held < 4 ? held : 4;
#pragma unroll
        for (int from = 0; from < held; from += some) {
            Pack<X, n> residual[some];
#pragma unroll
            for (int j = 0; j < some; ++j) {
                if (static_cast<unsigned>(from + j) >= mine) continue;
                const unsigned i = thread.lane + static_cast<unsigned>(from + j) * all.lanes;
                residual[j] = load<X, n>(at[1] + static_cast<uint64_t>(i) * vector_bytes);
            }
#pragma unroll
            for (int j = 0; j < some; ++j) {
                if (static_cast<unsigned>(from + j) >= mine) continue;
                const unsigned i = thread.lane + static_cast<unsigned>(from + j) * all.lanes;
                Pack<X, n>& sum = x[from + j];
                typename V::reg sums[n];
#pragma unroll
                for (int e = 0; e < n; ++e)
                    sums[e] = to_number(sum.at[e]) + to_number(residual[j].at[e]);
                sum = packed<X>(sums);
                store(at[3] + static_cast<uint64_t>(i) * vector_bytes, sum);
            }
        }
    }

    keep_packed(x);
    const Normal<V> normal = normal_of<norm, V, X>(x, mine, all, affine);
    keep_packed(x);
#pragma unroll
    for (int j = 0; j < held; ++j) {
        const unsigned i = thread.lane + static_cast<unsigned>(j) * all.lanes;
        if (static_cast<unsigned>(j) >= mine) continue;
        const int at_hand = early ? j : 0;
        const int at_hand_bias = early && norm == Norm::layer ? j : 0;
        if constexpr (!early) {
            weight[0] = load_affine<W, n>(affine.weight, i, 1);
            if constexpr (norm == Norm::layer) bias[0] = load_affine<W, n>(affine.bias, i, 0);
        }
        store(at[out] + static_cast<uint64_t>(i) * (n * sizeof(R)),
              normalized<norm, X, R, W, V>(x[j], weight[at_hand], bias[at_hand_bias], normal,
                                           affine));
    }
}

// False: these rows are not for this kernel.
template <Norm norm, class X, class W, class R, bool add>
bool launch_norm_rows(const RowShape<row_tensors<add>>& shape, const Affine& affine,
                      const Queue& queue) {
    constexpr int n = vector_bytes / sizeof(X);
    if (!has_few(shape, shape.rows) || !has_vectors(shape, n) || !is_aligned(affine.weight) ||
        !is_aligned(affine.bias))
        return false;
    const auto vectors = static_cast<uint64_t>(shape.n / n);
    const auto rows = static_cast<uint64_t>(shape.rows);
    const Split split = split_rows<Forward<X, add>::template Held, 8>(
        rows, vectors, card(queue.device).multiprocessors);
    if (split.held == 0) return false;
    const Places<row_tensors<add>, uint32_t, few_dims> places(shape, n);
    const RowsOf<NumberOf<X>> all{rows, static_cast<unsigned>(vectors), split.lanes,
                                  Length<NumberOf<X>>(static_cast<uint64_t>(shape.n))};
    with_held<8>(split.held, [&](auto held) {
        launch(queue.stream, norm_rows<norm, X, W, R, add, decltype(held)::value>, split.grid,
               split.threads, places, all, affine);
    });
    return true;
}

}  // namespace
}  // namespace twinkle_pack::cuda
