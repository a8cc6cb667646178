#pragma once
// A linear layer with packed weights, and its result in double.

#include <cmath>
#include <random>
#include <vector>

#include "cuda/bits_linear.h"
#include "elements.h"
#include "fp8.h"

namespace twinkle_pack::cuda {
namespace {

// Where operators/families.h says that the values and the scale of a weight are.
struct Place {
    size_t byte, scale;
    int shift = 0;
};
Place place(Packing packing, size_t output, size_t at, size_t outputs, size_t depth) {
    if (packing == Packing::fp8) return {output * depth + at, output};
    const size_t of_group = packing == Packing::int4 ? 32 : 64, groups = depth / 64;
    const size_t first = output / 16 * 16, width = std::min<size_t>(16, outputs - first);
    const size_t group = at / 64, byte = at % 64 % of_group;
    return {(first * groups + group * width) * of_group + (byte / 4 * width + output - first) * 4 +
                byte % 4,
            first * groups + group * width + output - first,
            static_cast<int>(at % 64 / of_group) * 4};
}

template <class T>
struct Packed {
    Packing packing;
    size_t rows, outputs, depth;
    Elements<T> x, bias, y;
    Elements<uint8_t> values;
    Elements<float> scales;
    std::vector<double> weight;

    Packed(Packing how, size_t of_rows, size_t of_outputs, size_t of_depth)
        : packing(how),
          rows(of_rows),
          outputs(of_outputs),
          depth(of_depth),
          x(rows * depth),
          bias(outputs),
          y(rows * outputs + 1),
          values(outputs * depth),
          scales(outputs * depth / 64),
          weight(outputs * depth) {
        std::mt19937 random(static_cast<unsigned>(rows * 7 + outputs * 3 + depth));
        std::normal_distribution<float> normal;
        std::uniform_real_distribution<float> scale(0.5, 2);
        for (size_t i = 0; i < rows * depth; ++i) x[i] = from_float<T>(normal(random));
        for (size_t i = 0; i < outputs; ++i) bias[i] = from_float<T>(normal(random));
        for (size_t i = 0; i <= rows * outputs; ++i) y[i] = from_float<T>(12345);
        for (size_t i = 0; i < outputs * depth; ++i) values[i] = 0;
        for (size_t i = 0; i < outputs * depth / 64; ++i) scales[i] = scale(random);
        for (size_t output = 0; output < outputs; ++output)
            for (size_t at = 0; at < depth; ++at) {
                const Place here = place(packing, output, at, outputs, depth);
                auto bits = static_cast<uint8_t>(random());
                if (packing == Packing::int4) bits &= 15;
                if (packing == Packing::fp8 && (bits & 127) == 127) bits = 0;  // NaN
                values[here.byte] |= static_cast<uint8_t>(bits << here.shift);
                const float value =
                    packing == Packing::fp8
                        ? fp8_to_float(bits) / 64
                        : static_cast<float>(bits) - (packing == Packing::int4 ? 8.0f : 128.0f);
                if (packing == Packing::fp8) scales[output] = 1.0f / 64;
                weight[output * depth + at] =
                    packing == Packing::fp8 ? double{value} : double{value} * scales[here.scale];
            }
    }

    PackedLayer layer(bool with_bias) {
        return {packing,
                dtype<T>,
                x.data(),
                values.data(),
                scales.data(),
                with_bias ? bias.data() : nullptr,
                y.data(),
                static_cast<int64_t>(rows),
                static_cast<int64_t>(outputs),
                static_cast<int64_t>(depth)};
    }

    // The largest error, of the size that results have.
    double error(bool with_bias) {
        double most = 0, squares = 0;
        for (const double one : weight) squares += one * one;
        const double size = std::sqrt(squares / static_cast<double>(outputs));
        for (size_t row = 0; row < rows; ++row)
            for (size_t output = 0; output < outputs; ++output) {
                double sum = with_bias ? to_float(bias[output]) : 0;
                for (size_t k = 0; k < depth; ++k)
                    sum += double{to_float(x[row * depth + k])} * weight[output * depth + k];
                const double off = std::abs(to_float(y[row * outputs + output]) - sum);
                if (!(off <= most)) most = off;
            }
        return most / size;
    }
};

// float32 is taken as two bfloat16.
template <class T>
constexpr double limit = 5e-5;
template <>
constexpr double limit<BFloat16> = 3e-2;
template <>
constexpr double limit<Float16> = 4e-3;

}  // namespace
}  // namespace twinkle_pack::cuda
