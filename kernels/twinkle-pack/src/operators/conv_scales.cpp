#include "operators/conv_scales.h"

#include <algorithm>
#include <cmath>

#include "operators/convolution.h"

namespace twinkle_pack {
namespace {

double half_value(uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const double fraction = bits & 1023;
    const double value = exponent == 0    ? std::ldexp(fraction, -24)
                         : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                          : std::ldexp(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -value : value;
}

double bfloat16_value(uint16_t bits) {
    return __builtin_bit_cast(float, uint32_t{bits} << 16);
}

// As many channels as are computed at once: what a layer has of them may be thousands, and memory
// for those costs more than the sums.
constexpr int64_t most = 64;

struct Block {
    double at[most];

    // `count` numbers of the channels from `begin` on, or `otherwise`.
    void read(const View& view, int64_t begin, int64_t count, double otherwise) {
        if (!view.is_there()) {
            std::fill_n(at, count, otherwise);
            return;
        }
        switch (dtype_of(view)) {
            case DType::float32: return read<float>(view, begin, count, as_it_is<float>);
            case DType::float64: return read<double>(view, begin, count, as_it_is<double>);
            case DType::float16: return read<uint16_t>(view, begin, count, half_value);
            case DType::bfloat16: return read<uint16_t>(view, begin, count, bfloat16_value);
            case DType::fp8: return;  // which dtype_of never returns
        }
    }

private:
    template <class T>
    static double as_it_is(T value) {
        return value;
    }

    template <class T, class Value>
    void read(const View& view, int64_t begin, int64_t count, Value value) {
        const int64_t stride = view.strides[0];
        const T* const from = static_cast<const T*>(view.data) + begin * stride;
        if (stride == 1)
            for (int64_t c = 0; c < count; ++c) at[c] = value(from[c]);
        else
            for (int64_t c = 0; c < count; ++c) at[c] = value(from[c * stride]);
    }
};

}  // namespace

ConvScales::ConvScales(const Inputs& in, int64_t channels)
    : scale(new float[static_cast<size_t>(channels)]),
      shift(new float[static_cast<size_t>(channels)]) {
    using Call = ConvCall;
    const bool is_normalized = in.tensors[Call::mean_at].is_there();
    const double eps = in.numbers[Call::eps_at];
    Block bias, mean, variance, gain, offset;
    for (int64_t begin = 0; begin < channels; begin += most) {
        const int64_t count = std::min(most, channels - begin);
        bias.read(in.tensors[Call::bias_at], begin, count, 0);
        if (!is_normalized) {
            std::fill_n(&scale[begin], count, 1.0F);
            std::copy_n(bias.at, count, &shift[begin]);
            continue;
        }
        mean.read(in.tensors[Call::mean_at], begin, count, 0);
        variance.read(in.tensors[Call::variance_at], begin, count, 1);
        gain.read(in.tensors[Call::gain_at], begin, count, 1);
        offset.read(in.tensors[Call::offset_at], begin, count, 0);
        for (int64_t c = 0; c < count; ++c) {
            const double factor = gain.at[c] / std::sqrt(variance.at[c] + eps);
            scale[begin + c] = static_cast<float>(factor);
            shift[begin + c] =
                static_cast<float>((bias.at[c] - mean.at[c]) * factor + offset.at[c]);
        }
    }
}

}  // namespace twinkle_pack
