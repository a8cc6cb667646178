#pragma once
// Normalization of rows of any length, stride, alignment and mix of dtypes.

#include "cuda/norm_rows.h"

namespace twinkle_pack::cuda {
namespace {

// The elements of a tensor whose rows have their own addresses, or of a weight.
struct Elements {
    DType dtype;
    int64_t step;  // in bytes

    template <class Number>
    __device__ __forceinline__ Number get(const char* row, uint64_t i) const {
        return load_as<Number>(dtype, row + static_cast<int64_t>(i) * step);
    }
};

inline Elements elements_of(const View& view, int64_t stride) {
    const DType dtype = view.is_there() ? dtype_of(view) : DType::float32;
    return {dtype, stride * element_size(dtype)};
}

struct AnyNorm {
    Elements x, residual, result, sum, weight, bias;
    uint64_t rows, n;
    unsigned lanes;
};

// A compensated sum of many numbers, with at most one rounding: the rounding error of each addition
// is summed, too.
template <class Number>
struct LongSum {
    Number high = 0, low = 0;

    __device__ __forceinline__ void add(Number value) {
        const Number sum = high + value, added = sum - high;
        low += (high - (sum - added)) + (value - added);
        high = sum;
    }
    // If the sum becomes infinite, its rounding errors mean nothing.
    __device__ __forceinline__ double total() const {
        const double wide = high;
        return low - low == 0 ? wide + low : wide;
    }
};

// Per-row values are computed in double.
template <class V>
__device__ __forceinline__ typename V::Scale narrowed(Double::Scale wide) {
    const double value = wide.high + wide.low;
    const auto high = static_cast<typename V::reg>(value);
    return {high, is_finite(high) ? static_cast<typename V::reg>(value - high) : 0};
}
template <class V>
__device__ __forceinline__ Normal<V> narrowed(const Normal<Double>& wide) {
    if constexpr (std::is_same_v<V, Double>) return wide;
    return {narrowed<V>(wide.scale), narrowed<V>(wide.minus_mean)};
}

constexpr unsigned any_threads = 256;

inline unsigned any_lanes(int64_t n) {
    return n > 512                                     ? any_threads
           : power_up(static_cast<uint64_t>(n)) < warp ? power_up(static_cast<uint64_t>(n))
                                                       : warp;
}

template <Norm norm, class Number, bool add>
__global__ void __launch_bounds__(any_threads)
    norm_any(Places<row_tensors<add>, uint64_t, all_dims> places, AnyNorm all, Length<double> size,
             Affine affine) {
    using V = Scalar<Number, false>;
    __shared__ double first[warp], second[warp], third[warp];
    const Lane thread(all.lanes);
    const bool active = thread.row < all.rows;
    const uint64_t stop = active ? all.n : 0;
    char* at[row_tensors<add>];
    places.find_row(active ? thread.row : 0, at);
    if constexpr (add)
        for (uint64_t i = thread.lane; i < stop; i += all.lanes)
            store_as<Number>(all.sum.dtype, at[3] + static_cast<int64_t>(i) * all.sum.step,
                             all.x.get<Number>(at[0], i) + all.residual.get<Number>(at[1], i));
    // Each thread reads only what it has written itself.
    const Elements x = add ? all.sum : all.x;
    const char* const row = add ? at[add ? 3 : 0] : at[0];
    LongSum<Number> values, squared;
    Normal<V> normal;
    if constexpr (norm == Norm::rms) {
        for (uint64_t i = thread.lane; i < stop; i += all.lanes) {
            const Number value = x.get<Number>(row, i);
            squared.add(V::mul(value, value));
        }
        double squares = sum_over_lanes(squared.total(), all.lanes, first);
        // If the original's squares overflow float32, its result is zero.
        if (x.dtype != DType::float64 && squares > 3.4028234663852886e38) squares = INFINITY;
        normal = narrowed<V>(Normal<Double>::root_mean_square(squares, size, affine.eps));
    } else {
        for (uint64_t i = thread.lane; i < stop; i += all.lanes) values.add(x.get<Number>(row, i));
        const auto mean =
            static_cast<Number>(size.of<Double>(sum_over_lanes(values.total(), all.lanes, first)));
        LongSum<Number> differences;
        for (uint64_t i = thread.lane; i < stop; i += all.lanes) {
            const Number difference = x.get<Number>(row, i) - mean;
            differences.add(difference);
            squared.add(V::mul(difference, difference));
        }
        normal = narrowed<V>(Normal<Double>::layer(
            mean, sum_over_lanes(differences.total(), all.lanes, second),
            sum_over_lanes(squared.total(), all.lanes, third), size, affine.eps));
    }
    const bool half = x.dtype == DType::bfloat16 || x.dtype == DType::float16;
    for (uint64_t i = thread.lane; i < stop; i += all.lanes) {
        const Number value = x.get<Number>(row, i);
        const Number weight =
            affine.weight ? all.weight.get<Number>(static_cast<const char*>(affine.weight), i) +
                                static_cast<Number>(affine.offset)
                          : Number(1);
        Number result;
        if constexpr (norm == Norm::layer) {
            const Number bias = affine.bias
                                    ? all.bias.get<Number>(static_cast<const char*>(affine.bias), i)
                                    : Number(0);
            result = V::normalized(value, normal.minus_mean, normal.scale, weight, bias);
        } else if (half && affine.between) {
            result = V::mul(rounded_to<Number>(x.dtype, V::mul(value, normal.scale.high)), weight);
        } else {
            result = V::product(value, normal.scale, weight);
        }
        store_as<Number>(all.result.dtype,
                         at[add ? 2 : 1] + static_cast<int64_t>(i) * all.result.step, result);
    }
}

template <Norm norm, class Number, bool add>
void launch_norm_any(const RowShape<row_tensors<add>>& shape, AnyNorm all, const Affine& affine,
                     const Queue& queue) {
    check_dims(shape);
    all.rows = static_cast<uint64_t>(shape.rows);
    all.n = static_cast<uint64_t>(shape.n);
    all.lanes = any_lanes(shape.n);
    all.x.step = shape.inner_step[0];
    all.result.step = shape.inner_step[add ? 2 : 1];
    if constexpr (add) all.residual.step = shape.inner_step[1], all.sum.step = shape.inner_step[3];
    const Places<row_tensors<add>, uint64_t, all_dims> places(shape, 1);
    const Grid grid{quotient_up(all.rows, all.lanes > warp ? 1 : any_threads / all.lanes)};
    launch(queue.stream, norm_any<norm, Number, add>, grid, any_threads, places, all,
           Length<double>(all.n), affine);
}

}  // namespace
}  // namespace twinkle_pack::cuda
