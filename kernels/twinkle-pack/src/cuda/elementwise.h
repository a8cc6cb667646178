#pragma once
// result = f(inputs), element by element.

#include "cuda/launches.h"
#include "cuda/places.h"

namespace twinkle_pack::cuda {
namespace {

// Vectors of each tensor in a thread's hands: with all threads that a multiprocessor holds, enough
// to hide the memory's latency.
template <class T>
constexpr int at_once = sizeof(T) == 8 ? 1 : 2;
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
        for (int k = 0; k < F::inputs; ++k) values[k] = to_number(in[k].at[i]);
        F::template apply<V>(values, result);
#pragma unroll
        for (int k = 0; k < F::outputs; ++k) results[k][i] = result[k];
    }
#pragma unroll
    for (int k = 0; k < F::outputs; ++k) out[k] = packed<T>(results[k]);
}

// Tensors without gaps: [0, elements) of each. The last elements, too few for a vector, are the
// last block's.
template <class F>
struct Dense {
    static constexpr int count = F::inputs + F::outputs;
    char* base[count];
    uint64_t elements;
};

// `each`: vectors of n elements that a thread computes.
template <class F, class T, int n, int each>
__global__ void __launch_bounds__(most_threads) dense(Dense<F> tensors, bool past) {
    const uint64_t vectors = tensors.elements / n;
    const uint64_t first = static_cast<uint64_t>(blockIdx.x) * (blockDim.x * each) + threadIdx.x;
    Pack<T, n> in[each][F::inputs], out[F::outputs];
#pragma unroll
    for (int u = 0; u < each; ++u) {
        const uint64_t i = first + u * blockDim.x;
        if (i >= vectors) continue;
#pragma unroll
        for (int k = 0; k < F::inputs; ++k)
            in[u][k] = load<T, n>(tensors.base[k] + i * sizeof(Pack<T, n>));
    }
#pragma unroll
    for (int u = 0; u < each; ++u) {
        const uint64_t i = first + u * blockDim.x;
        if (i >= vectors) continue;
        compute<F>(in[u], out);
#pragma unroll
        for (int k = 0; k < F::outputs; ++k)
            store(tensors.base[F::inputs + k] + i * sizeof(Pack<T, n>), out[k], past);
    }
    const uint64_t rest = vectors * n + threadIdx.x;
    if (blockIdx.x + 1 == gridDim.x && rest < tensors.elements) {
        Pack<T, 1> one[F::inputs], result[F::outputs];
#pragma unroll
        for (int k = 0; k < F::inputs; ++k) one[k] = load<T, 1>(tensors.base[k] + rest * sizeof(T));
        compute<F>(one, result);
#pragma unroll
        for (int k = 0; k < F::outputs; ++k)
            store(tensors.base[F::inputs + k] + rest * sizeof(T), result[k], past);
    }
}

// Tensors of any strides, in vectors of n elements.
template <class F, class T, int n, int each, class Index, int most>
__global__ void __launch_bounds__(most_threads)
    strided(Places<F::inputs + F::outputs, Index, most> places, bool past) {
    constexpr int count = F::inputs + F::outputs;
    const Index first = static_cast<Index>(blockIdx.x) * (blockDim.x * each) + threadIdx.x;
    Pack<T, n> in[each][F::inputs], out[F::outputs];
    char* results[each][F::outputs];
#pragma unroll
    for (int u = 0; u < each; ++u) {
        const Index i = first + u * blockDim.x;
        if (i >= places.items) continue;
        char* at[count];
        places.find(i, at);
#pragma unroll
        for (int k = 0; k < F::inputs; ++k) in[u][k] = load<T, n>(at[k]);
#pragma unroll
        for (int k = 0; k < F::outputs; ++k) results[u][k] = at[F::inputs + k];
    }
#pragma unroll
    for (int u = 0; u < each; ++u) {
        if (first + u * blockDim.x >= places.items) continue;
        compute<F>(in[u], out);
#pragma unroll
        for (int k = 0; k < F::outputs; ++k) store(results[u][k], out[k], past);
    }
}

// Small blocks where there is little to do, so that all multiprocessors take part.
struct Blocks {
    unsigned threads = most_threads;
    Grid grid;

    Blocks(uint64_t items, int each, int multiprocessors) {
        const auto of_thread = static_cast<uint64_t>(each);
        const auto wanted = static_cast<uint64_t>(multiprocessors) * 2;
        while (threads > 64 && quotient_up(items, threads * of_thread) < wanted) threads /= 2;
        grid.x = quotient_up(items, threads * of_thread);
        if (grid.x == 0) grid.x = 1;
    }
};

template <class F, class T, int n, int each, class Index, int most>
void launch_strided(const RowShape<F::inputs + F::outputs>& shape, const Queue& queue, bool past) {
    const Places<F::inputs + F::outputs, Index, most> places(shape, n);
    const Blocks blocks(places.items, each, card(queue.device).multiprocessors);
    launch(queue.stream, strided<F, T, n, each, Index, most>, blocks.grid, blocks.threads, places,
           past);
}

template <class F, class T, int n, int each>
void launch_dense(const RowShape<F::inputs + F::outputs>& shape, const Queue& queue, bool past) {
    Dense<F> tensors;
    for (int k = 0; k < F::inputs + F::outputs; ++k)
        tensors.base[k] = const_cast<char*>(shape.base[k]);
    tensors.elements = static_cast<uint64_t>(shape.n);
    const Blocks blocks(tensors.elements / n, each, card(queue.device).multiprocessors);
    launch(queue.stream, dense<F, T, n, each>, blocks.grid, blocks.threads, tensors, past);
}

// So few elements that all are under way at once, and what counts is how long one thread takes.
template <class T>
bool is_little(int64_t elements, const Card& card) {
    return elements * static_cast<int64_t>(sizeof(T)) <= int64_t{4096} * card.multiprocessors;
}

template <class F, class T>
void launch_elementwise(const RowShape<F::inputs + F::outputs>& shape, const Queue& queue) {
    constexpr int count = F::inputs + F::outputs, n = vector_bytes / sizeof(T);
    check_dims(shape);
    const Card here = card(queue.device);
    const bool past = static_cast<int64_t>(sizeof(T)) * count * shape.rows * shape.n >
                      int64_t{2} * here.cache_bytes;
    bool dense_and_aligned = shape.rows == 1;
    for (int k = 0; k < count; ++k)
        dense_and_aligned = dense_and_aligned && is_aligned(shape.base[k]) &&
                            (shape.inner_step[k] == sizeof(T) || shape.n == 1);
    const bool little = is_little<T>(shape.rows * shape.n, here);
    constexpr int few = sizeof(T) < 4 ? 4 / sizeof(T) : 1, each = at_once<T>;
    if (dense_and_aligned && little) {
        launch_dense<F, T, few, 1>(shape, queue, past);
    } else if (dense_and_aligned) {
        launch_dense<F, T, n, each>(shape, queue, past);
    } else if (sizeof(T) < 8 && has_few(shape, shape.rows * (shape.n / n)) &&
               has_vectors(shape, n)) {
        if constexpr (sizeof(T) < 8) {
            if (little && has_few(shape, shape.rows * (shape.n / few)))
                launch_strided<F, T, few, 1, uint32_t, few_dims>(shape, queue, past);
            else
                launch_strided<F, T, n, each, uint32_t, few_dims>(shape, queue, past);
        }
    } else if (sizeof(T) < 8 && has_few(shape, shape.rows * shape.n)) {
        if constexpr (sizeof(T) < 8)
            launch_strided<F, T, 1, each, uint32_t, few_dims>(shape, queue, past);
    } else {
        launch_strided<F, T, 1, each, uint64_t, all_dims>(shape, queue, past);
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
