#pragma once
// result = f(inputs), element by element.

#include "cuda/launches.h"
#include "cuda/launching.h"
#include "cuda/places.h"

namespace twinkle_pack::cuda {
namespace {

constexpr unsigned most_threads = 256;

template <class F, class T, int n>
__device__ __forceinline__ void compute(const Pack<T, n> (&in)[F::inputs],
                                        Pack<T, n> (&out)[F::outputs]) {
    using V = typename ComputedIn<T>::type;
    using Number = typename V::reg;
    Number results[F::outputs][n];
#pragma unroll
    for (int i = 0; i < n; ++i) {
        Number values[F::inputs], result[F::outputs];
#pragma unroll
        for (int k = 0; k < F::inputs; ++k) values[k] = number_at(in[k], i);
        F::template apply<V>(values, result);
#pragma unroll
        for (int k = 0; k < F::outputs; ++k) results[k][i] = result[k];
    }
#pragma unroll
    for (int k = 0; k < F::outputs; ++k) out[k] = packed<T>(results[k]);
}

// Tensors without gaps: [0, elements) of each. The last block handles the last elements, too few
// for a vector.
template <class F>
struct Dense {
    static constexpr int count = F::inputs + F::outputs;
    char* base[count];
    uint64_t elements;
};

// A thread computes one vector of n elements: several per thread are no faster, on an H200.
template <class F, class T, int n, Reading reading>
__global__ void __launch_bounds__(most_threads) dense(Dense<F> tensors) {
    const uint64_t vectors = tensors.elements / n;
    const uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    wait_for_earlier();
    if (i < vectors) {
        Pack<T, n> in[F::inputs], out[F::outputs];
#pragma unroll
        for (int k = 0; k < F::inputs; ++k)
            in[k] = load<T, n, reading>(tensors.base[k] + i * sizeof(Pack<T, n>));
        let_next_begin();
        compute<F>(in, out);
#pragma unroll
        for (int k = 0; k < F::outputs; ++k)
            store(tensors.base[F::inputs + k] + i * sizeof(Pack<T, n>), out[k]);
    }
    const uint64_t rest = vectors * n + threadIdx.x;
    if (blockIdx.x + 1 == gridDim.x && rest < tensors.elements) {
        Pack<T, 1> one[F::inputs], result[F::outputs];
#pragma unroll
        for (int k = 0; k < F::inputs; ++k) one[k] = load<T, 1>(tensors.base[k] + rest * sizeof(T));
        compute<F>(one, result);
#pragma unroll
        for (int k = 0; k < F::outputs; ++k)
            store(tensors.base[F::inputs + k] + rest * sizeof(T), result[k]);
    }
}

// Tensors of any strides, in vectors of n elements.
template <class F, class T, int n, class Index, int most, Reading reading>
__global__ void __launch_bounds__(most_threads)
    strided(Places<F::inputs + F::outputs, Index, most> places) {
    constexpr int count = F::inputs + F::outputs;
    const Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
    char* at[count];
    places.find(i < places.items ? i : 0, at);
    wait_for_earlier();
    if (i >= places.items) return;
    Pack<T, n> in[F::inputs], out[F::outputs];
#pragma unroll
    for (int k = 0; k < F::inputs; ++k) in[k] = load<T, n, reading>(at[k]);
    let_next_begin();
    compute<F>(in, out);
#pragma unroll
    for (int k = 0; k < F::outputs; ++k) store(at[F::inputs + k], out[k]);
}

// Narrower loads have no cache hints.
template <class T, int n>
constexpr bool loads_wide = n * sizeof(T) == vector_bytes;

inline Grid grid_for(uint64_t items, unsigned threads) {
    return {items == 0 ? 1 : quotient_up(items, threads)};
}

template <class F, class T, int n, class Index, int most>
void launch_strided(const RowShape<F::inputs + F::outputs>& shape, const Queue& queue) {
    const Places<F::inputs + F::outputs, Index, most> places(shape, n);
    // Small blocks if there are few; otherwise larger ones are faster, on an H200.
    const unsigned threads = places.items < 8192 ? 128 : most_threads;
    const Card here = card(queue.device);
    const uint64_t results = static_cast<uint64_t>(shape.rows * shape.n) * F::outputs;
    with_reading<loads_wide<T, n>>(
        reading_beside(results * sizeof(T), here, queue.config), [&](auto how) {
            launch_early(queue.stream, here, strided<F, T, n, Index, most, decltype(how)::value>,
                         grid_for(places.items, threads), threads, 1, places);
        });
}

template <class F, class T, int n>
void launch_dense(const RowShape<F::inputs + F::outputs>& shape, const Queue& queue) {
    Dense<F> tensors;
    for (int k = 0; k < F::inputs + F::outputs; ++k)
        tensors.base[k] = const_cast<char*>(shape.base[k]);
    tensors.elements = static_cast<uint64_t>(shape.n);
    const Card here = card(queue.device);
    const uint64_t results = tensors.elements * F::outputs;
    with_reading<loads_wide<T, n>>(
        reading_beside(results * sizeof(T), here, queue.config), [&](auto how) {
            launch_early(queue.stream, here, dense<F, T, n, decltype(how)::value>,
                         grid_for(tensors.elements / n, most_threads), most_threads, 1, tensors);
        });
}

// So few elements that all are in flight at once, and the latency of one thread decides.
template <class T>
bool is_little(int64_t elements, const Card& card) {
    return elements * static_cast<int64_t>(sizeof(T)) <= int64_t{4096} * card.multiprocessors;
}

template <class F, class T>
void launch_elementwise(const RowShape<F::inputs + F::outputs>& shape, const Queue& queue) {
    constexpr int count = F::inputs + F::outputs, n = vector_bytes / sizeof(T);
    check_dims(shape);
    bool dense_and_aligned = shape.rows == 1;
    for (int k = 0; k < count; ++k)
        dense_and_aligned = dense_and_aligned && at_vectors(shape.base[k]) &&
                            (shape.inner_step[k] == sizeof(T) || shape.n == 1);
    if (dense_and_aligned && is_little<T>(shape.n, card(queue.device))) {
        launch_dense<F, T, sizeof(T) < 4 ? 4 / sizeof(T) : 1>(shape, queue);
    } else if (dense_and_aligned) {
        launch_dense<F, T, n>(shape, queue);
    } else if (sizeof(T) < 8 && has_few(shape, shape.rows * (shape.n / n)) &&
               has_vectors(shape, n)) {
        if constexpr (sizeof(T) < 8) launch_strided<F, T, n, uint32_t, few_dims>(shape, queue);
    } else if (sizeof(T) < 8 && has_few(shape, shape.rows * shape.n)) {
        if constexpr (sizeof(T) < 8) launch_strided<F, T, 1, uint32_t, few_dims>(shape, queue);
    } else {
        launch_strided<F, T, 1, uint64_t, all_dims>(shape, queue);
    }
}

template <class F>
void launch_elementwise(DType dtype, const RowShape<F::inputs + F::outputs>& shape,
                        const Queue& queue) {
    if (shape.rows == 0 || shape.n == 0) return;
    with_type(dtype, [&](auto value) { launch_elementwise<F, decltype(value)>(shape, queue); });
}

}  // namespace
}  // namespace twinkle_pack::cuda
