#pragma once
// Normalization of rows that are held in registers.

#include "cuda/launches.h"
#include "cuda/moments.h"
#include "cuda/norm_split.h"

namespace twinkle_pack::cuda {
namespace {

// One vector of the result.
template <Norm norm, class X, class R, class W, class V, int n>
__device__ __forceinline__ Pack<R, n> normalized(const Pack<X, n>& x, const Pack<W, n>& weight,
                                                 const Pack<W, n>& bias, const Normal<V>& normal,
                                                 const AffineOf<typename V::reg>& affine) {
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
        const reg offset = affine.offset;
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

template <Team team, bool add>
using PlacesOf = std::conditional_t<team == Team::any, Places<row_tensors<add>, uint32_t, few_dims>,
                                    EvenRows<row_tensors<add>>>;

// x + residual, rounded; the residual's first vectors are under way. No more of it is held than x
// leaves room for.
template <class V, class X, int n, int held, int some, class Place>
__device__ __forceinline__ void add_residual(Pack<X, n> (&x)[held], Loaded<X, n> (&residual)[some],
                                             const Place& share) {
#pragma unroll
    for (int from = 0; from < held; from += some) {
        if (from > 0)
#pragma unroll
            for (int j = 0; j < some; ++j)
                if (share.loads(from + j))
                    residual[j] = share.template load_from<X, n>(1, from + j);
#pragma unroll
        for (int j = 0; j < some; ++j) {
            if (!share.loads(from + j)) continue;
            const Pack<X, n> other = unpacked<X, n>(residual[j]);
            Pack<X, n>& sum = x[from + j];
            typename V::reg sums[n];
#pragma unroll
            for (int e = 0; e < n; ++e) sums[e] = to_number(sum.at[e]) + to_number(other.at[e]);
            sum = packed<X>(sums);
            share.store_to(3, from + j, sum);
        }
    }
}

// The row's results. Weights that are not there yet come some at a time: loads do not pass stores.
template <Norm norm, class R, class V, int out, class W, class X, int n, int held, int weights,
          int biases, class Place>
__device__ __forceinline__ void store_row(const Pack<X, n> (&x)[held],
                                          Loaded<W, n> (&weight)[weights],
                                          Loaded<W, n> (&bias)[biases], const Place& share,
                                          const Normal<V>& normal,
                                          const AffineOf<typename V::reg>& affine) {
#pragma unroll
    for (int from = 0; from < held; from += weights) {
#pragma unroll
        for (int j = 0; j < weights && !Place::loads_all; ++j) {
            if (!share.is_mine(from + j)) continue;
            if (affine.weight)
                weight[j] = share.template load_shared<W, n>(affine.weight, from + j);
            if (norm == Norm::layer && affine.bias)
                bias[j] = share.template load_shared<W, n>(affine.bias, from + j);
        }
#pragma unroll
        for (int j = 0; j < weights; ++j) {
            if (!share.is_mine(from + j)) continue;
            Pack<W, n> factor = unpacked<W, n>(weight[j]), shift = {};
            if (!Place::loads_all && !affine.weight) factor = all_of<W, n>(1);
            if constexpr (norm == Norm::layer) {
                shift = unpacked<W, n>(bias[j]);
                if (!Place::loads_all && !affine.bias) shift = all_of<W, n>(0);
            }
            share.store_to(
                out, from + j,
                normalized<norm, X, R, W, V>(x[from + j], factor, shift, normal, affine));
        }
    }
}

template <Norm norm, class X, class W, class R, bool add, Team team, int held>
__global__ void __launch_bounds__(Forward<X, W>::template Limits<team, held>::threads,
                                  Forward<X, W>::template Limits<team, held>::blocks)
    norm_rows(PlacesOf<team, add> places, RowsOf<NumberOf<X>> all, AffineOf<NumberOf<X>> affine) {
    using V = typename ComputedIn<X>::type;
    constexpr int n = vector_bytes / sizeof(X), out = add ? 2 : 1, some = held < 4 ? held : 4;
    constexpr bool early = team != Team::any;
    constexpr int weights = early ? held : 1, biases = norm == Norm::layer ? weights : 1;
    __shared__ Gathered<Moments, warp> gathered;
    if constexpr (team == Team::cluster) gathered.prepare();
    const Seat seat = Seat::of<team>(all);
    const Share<team, row_tensors<add>> share(seat, all, places);
    Loaded<X, n> loaded[held] = {}, residual[add ? some : 1];
    Loaded<W, n> weight[weights], bias[biases];
    wait_for_earlier();
#pragma unroll
    for (int j = 0; j < held; ++j)
        if (share.loads(j)) loaded[j] = share.template load_from<X, n>(0, j);
#pragma unroll
    for (int j = 0; j < some && add; ++j)
        if (share.loads(j)) residual[j] = share.template load_from<X, n>(1, j);
#pragma unroll
    for (int j = 0; j < weights && early; ++j)
        weight[j] = share.template load_shared<W, n>(affine.weight, j);
#pragma unroll
    for (int j = 0; j < biases && early && norm == Norm::layer; ++j)
        bias[j] = share.template load_shared<W, n>(affine.bias, j);
    let_next_begin<132>();

    Pack<X, n> x[held];
#pragma unroll
    for (int j = 0; j < held; ++j) x[j] = unpacked<X, n>(loaded[j]);
    if constexpr (add) add_residual<V>(x, residual, share);
#pragma unroll
    for (int j = 0; j < held && early; ++j)
        if (!share.is_mine(j)) x[j] = {};

    keep_packed(x);
    const Normal<V> normal = normal_of<norm, V>(x, share, all, gathered, affine.eps);
    keep_packed(x);
    store_row<norm, R, V, out>(x, weight, bias, share, normal, affine);
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
    const Card here = card(queue.device);
    const bool full = affine.weight && (norm == Norm::rms || affine.bias);
    const ForwardSplit split = split_forward<X, W, add>(
        shape, vectors, row_tensors<add> + (norm == Norm::layer ? 2 : 1), full, here);
    if (split.held == 0) return false;
    const RowsOf<NumberOf<X>> all(static_cast<uint64_t>(shape.rows), vectors, split, shape.n);
    const auto start = [&](auto team, auto held, const auto& places) {
        using Limits =
            typename Forward<X, W>::template Limits<decltype(team)::value, decltype(held)::value>;
        check_threads(split.threads, Limits::threads);
        launch_early(queue.stream, here,
                     norm_rows<norm, X, W, R, add, decltype(team)::value, decltype(held)::value>,
                     split.grid, split.threads, split.blocks, places, all,
                     affine.in<NumberOf<X>>());
    };
    if (split.team == Team::any) {
        const PlacesOf<Team::any, add> places(shape, n);
        with_held<8>(split.held, [&](auto held) {
            start(std::integral_constant<Team, Team::any>(), held, places);
        });
    } else {
        const PlacesOf<Team::block, add> places(shape);
        with_held<4>(split.held, [&](auto held) {
            if (split.team == Team::block)
                start(std::integral_constant<Team, Team::block>(), held, places);
            else
                start(std::integral_constant<Team, Team::cluster>(), held, places);
        });
    }
    return true;
}

}  // namespace
}  // namespace twinkle_pack::cuda
