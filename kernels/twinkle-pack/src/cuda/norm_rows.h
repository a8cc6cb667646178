#pragma once
// Normalization of rows that are held in registers.

#include "cuda/launches.h"
#include "cuda/norm_split.h"
#include "cuda/normal_of_row.h"

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
            const reg value = number_at(x, i), factor = number_at(weight, i);
            const reg shift = number_at(bias, i);
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
                    V::product(number_at(x, i), normal.scale, number_at(weight, i) + offset);
        } else {
#pragma unroll
            for (int i = 0; i < n; ++i) results[i] = V::mul(number_at(x, i), normal.scale.high);
            if (affine.between) {
                const Pack<X, n> between = packed<X>(results);
#pragma unroll
                for (int i = 0; i < n; ++i) results[i] = number_at(between, i);
            }
#pragma unroll
            for (int i = 0; i < n; ++i)
                results[i] = V::mul(results[i], number_at(weight, i) + offset);
        }
    }
    return packed<R>(results);
}

template <Team team, bool add>
using PlacesOf = std::conditional_t<team == Team::any, Places<row_tensors<add>, uint32_t, few_dims>,
                                    EvenRows<row_tensors<add>>>;

// x + residual, rounded; the residual's first vectors are in flight. Only so many are held as fit
// in registers beside x.
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
            for (int e = 0; e < n; ++e) sums[e] = number_at(sum, e) + number_at(other, e);
            sum = packed<X>(sums);
            share.store_to(3, from + j, sum);
        }
    }
}

// Room for the vectors that are loaded early, or for one.
template <class T, int n, int early>
using LoadedEarly = Loaded<T, n>[early > 0 ? early : 1];

// The row's results. Weights and biases that were not loaded early come one at a time: loads do not
// pass stores.
template <Norm norm, class R, class V, int out, int weights, int biases, class W, class X, int n,
          int held, class Place>
__device__ __forceinline__ void store_row(const Pack<X, n> (&x)[held],
                                          LoadedEarly<W, n, weights>& weight,
                                          LoadedEarly<W, n, biases>& bias, const Place& share,
                                          const Normal<V>& normal,
                                          const AffineOf<typename V::reg>& affine) {
    const bool has_weight = Place::loads_all || affine.weight;
    const bool has_bias = norm == Norm::layer && (Place::loads_all || affine.bias);
#pragma unroll
    for (int j = 0; j < held; ++j) {
        const bool mine = share.is_mine(j);
        // Two loads are faster in a branch of their own, one is faster without.
        if (norm == Norm::layer && !mine) continue;
        if (weights == 0 && has_weight && mine)
            weight[0] = share.template load_shared<W, n>(affine.weight, j);
        if (biases == 0 && has_bias) bias[0] = share.template load_shared<W, n>(affine.bias, j);
        if (!mine) continue;
        Pack<W, n> factor = unpacked<W, n>(weight[weights > 0 ? j : 0]), shift = {};
        if (!has_weight) factor = all_of<W, n>(1);
        if (has_bias) shift = unpacked<W, n>(bias[biases > 0 ? j : 0]);
        share.store_to(out, j, normalized<norm, X, R, W, V>(x[j], factor, shift, normal, affine));
    }
}

template <Norm norm, class X, class W, class R, bool add, Team team, int held, Reading reading>
__global__ void __launch_bounds__(Forward<norm, X, W, add>::template Limits<team, held>::threads,
                                  Forward<norm, X, W, add>::template Limits<team, held>::blocks)
    norm_rows(PlacesOf<team, add> places, RowsOf<NumberOf<X>> all, AffineOf<NumberOf<X>> affine) {
    using V = typename ComputedIn<X>::type;
    using With = Forward<norm, X, W, add>;
    constexpr int n = vector_bytes / sizeof(X), out = add ? 2 : 1;
    constexpr int residuals = With::template residuals<team, held>;
    constexpr int weights = With::template weights<team, held>;
    constexpr int biases = With::template biases<team, held>;
    static_assert(team != Team::cluster ||
                  With::template Own<team>::threads * usual_cluster_blocks <=
                      warp * warp * parts_of_lane<team>);
    __shared__ GatheredFrom<team> gathered;
    if constexpr (team == Team::cluster) gathered.prepare();
    const Seat seat = Seat::of<team>(all);
    const Share<team, row_tensors<add>, reading> share(seat, all, places);
    Loaded<X, n> loaded[held] = {};
    LoadedEarly<X, n, residuals> residual;
    LoadedEarly<W, n, weights> weight;
    LoadedEarly<W, n, biases> bias;
    wait_for_earlier();
#pragma unroll
    for (int j = 0; j < held; ++j)
        if (share.loads(j)) loaded[j] = share.template load_from<X, n>(0, j);
#pragma unroll
    for (int j = 0; j < residuals; ++j)
        if (share.loads(j)) residual[j] = share.template load_from<X, n>(1, j);
#pragma unroll
    for (int j = 0; j < weights; ++j)
        weight[j] = share.template load_shared<W, n>(affine.weight, j);
#pragma unroll
    for (int j = 0; j < biases; ++j) bias[j] = share.template load_shared<W, n>(affine.bias, j);
    let_next_begin<132>();

    Pack<X, n> x[held];
#pragma unroll
    for (int j = 0; j < held; ++j) x[j] = unpacked<X, n>(loaded[j]);
    if constexpr (add) add_residual<V>(x, residual, share);
#pragma unroll
    for (int j = 0; j < held && team != Team::any; ++j)
        if (!share.is_mine(j)) x[j] = {};

    keep_packed(x);
    const Normal<V> normal = normal_of<norm, V>(x, share, all, gathered, affine.eps);
    keep_packed(x);
    store_row<norm, R, V, out, weights, biases, W>(x, weight, bias, share, normal, affine);
}

// False: this kernel cannot serve these rows.
template <Norm norm, class X, class W, class R, bool add>
bool launch_norm_rows(const RowShape<row_tensors<add>>& shape, const Affine& affine,
                      const Queue& queue) {
    using With = Forward<norm, X, W, add>;
    constexpr int n = vector_bytes / sizeof(X);
    if (!has_few(shape, shape.rows) || !has_vectors(shape, n) || !at_vectors(affine.weight) ||
        !at_vectors(affine.bias))
        return false;
    const auto vectors = static_cast<uint64_t>(shape.n / n);
    const Card here = card(queue.device);
    const bool full = affine.weight && (norm == Norm::rms || affine.bias);
    const ForwardSplit split = split_forward<norm, X, W, add>(shape, vectors, full, here);
    if (split.held == 0) return false;
    const RowsOf<NumberOf<X>> all(static_cast<uint64_t>(shape.rows), vectors, split, shape.n);
    const auto elements = static_cast<uint64_t>(shape.rows) * static_cast<uint64_t>(shape.n);
    const Reading reading =
        reading_beside(elements * (sizeof(R) + (add ? sizeof(X) : 0)), here, queue.config);
    const auto start = [&](auto team, auto held, const auto& places) {
        constexpr Team who = decltype(team)::value;
        constexpr int has = decltype(held)::value;
        check_threads(split.threads, With::template Limits<who, has>::threads);
        check_threads(split.blocks * split.threads, warp * warp * parts_of_lane<who>);
        with_reading<who != Team::cluster>(reading, [&](auto how) {
            launch_early(queue.stream, here,
                         norm_rows<norm, X, W, R, add, who, has, decltype(how)::value>, split.grid,
                         split.threads, split.blocks, places, all, affine.in<NumberOf<X>>());
        });
    };
    const PlacesOf<Team::block, add> even(shape);
    const auto start_own = [&](auto team) {
        with_held<4>(split.held, [&](auto held) { start(team, held, even); });
    };
    switch (split.team) {
        case Team::any:
            with_held<8>(split.held, [&, anyhow = PlacesOf<Team::any, add>(shape, n)](auto held) {
                start(std::integral_constant<Team, Team::any>(), held, anyhow);
            });
            break;
        case Team::block: start_own(std::integral_constant<Team, Team::block>()); break;
        case Team::cluster: start_own(std::integral_constant<Team, Team::cluster>()); break;
        case Team::lean:
            if constexpr (With::has_lean)
                start(std::integral_constant<Team, Team::lean>(), std::integral_constant<int, 4>(),
                      even);
    }
    return true;
}

}  // namespace
}  // namespace twinkle_pack::cuda
