#include "operators/convolution.h"

#include <algorithm>
#include <cmath>

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

// One number of each channel, or `otherwise`.
std::vector<double> numbers(const View& view, int64_t channels, double otherwise) {
    std::vector<double> all(static_cast<size_t>(channels), otherwise);
    if (!view.is_there()) return all;
    const auto read = [&]<class T>(const T* from, auto value) {
        for (int64_t c = 0; c < channels; ++c) {
            all[static_cast<size_t>(c)] = value(from[c * view.strides[0]]);
        }
    };
    const auto* const words = static_cast<const uint16_t*>(view.data);
    switch (dtype_of(view)) {
        case DType::float32:
            read(static_cast<const float*>(view.data), [](float value) -> double { return value; });
            break;
        case DType::float64:
            read(static_cast<const double*>(view.data), [](double value) { return value; });
            break;
        case DType::float16: read(words, half_value); break;
        case DType::bfloat16:
            read(words, [](uint16_t bits) -> double {
                return __builtin_bit_cast(float, uint32_t{bits} << 16);
            });
            break;
        case DType::fp8: break;  // which dtype_of never returns
    }
    return all;
}

bool has_one_for_each_channel(const View& view, int64_t channels, int dtype, bool may_be_float) {
    return view.dims == 1 && view.sizes[0] == channels &&
           (view.scalar_type == dtype ||
            (may_be_float && view.scalar_type == scalar_type_of(DType::float32)));
}

}  // namespace

ConvCall::ConvCall(const Inputs& in) {
    const View &x = in.tensors[x_at], &weight = in.tensors[weight_at];
    if (x.dims != 4 || weight.dims != 4) return;
    groups = integer(in, groups_at);
    const int64_t finish = integer(in, finish_at);
    if (finish < 0 || finish >= conv_finish_count) return;
    if (groups < 1 || weight.sizes[0] < 1 || weight.sizes[0] % groups != 0) return;
    shape.channels = weight.sizes[1];
    shape.out_channels = weight.sizes[0] / groups;
    if (shape.channels > x.sizes[1] || shape.channels * groups != x.sizes[1]) return;
    for (int d = 0; d < 2; ++d) {
        shape.kernel[d] = weight.sizes[2 + d];
        shape.stride[d] = integer(in, stride_at + d);
        shape.padding[d] = integer(in, padding_at + d);
        shape.dilation[d] = integer(in, dilation_at + d);
    }
    is_valid = set_windows(x, shape);
    shape.result_image = all_out_channels() * shape.out_pixels;
}

bool ConvCall::is_result_shape(const View& view) const {
    const int64_t sizes[] = {shape.images, all_out_channels(), shape.out_height, shape.out_width};
    return view.dims == 4 && std::equal(sizes, sizes + 4, view.sizes);
}

bool ConvCall::has_right_tensors(const Inputs& in) const {
    const View& x = in.tensors[x_at];
    if (!is_supported(x.scalar_type) || in.tensors[weight_at].scalar_type != x.scalar_type)
        return false;
    for (const int at : {bias_at, mean_at, variance_at, gain_at, offset_at})
        if (in.tensors[at].is_there() &&
            !has_one_for_each_channel(in.tensors[at], all_out_channels(), x.scalar_type,
                                      at != bias_at))
            return false;
    if (in.tensors[mean_at].is_there() != in.tensors[variance_at].is_there()) return false;
    const View& residual = in.tensors[residual_at];
    return !residual.is_there() ||
           (residual.scalar_type == x.scalar_type && is_result_shape(residual));
}

ConvScales::ConvScales(const Inputs& in, int64_t channels)
    : scale(static_cast<size_t>(channels)), shift(scale.size()) {
    const auto of = [&](int at, double otherwise) {
        return numbers(in.tensors[at], channels, otherwise);
    };
    using Call = ConvCall;
    const auto bias = of(Call::bias_at, 0);
    if (!in.tensors[Call::mean_at].is_there()) {
        std::fill(scale.begin(), scale.end(), 1.0F);
        std::transform(bias.begin(), bias.end(), shift.begin(),
                       [](double added) { return static_cast<float>(added); });
        return;
    }
    const auto mean = of(Call::mean_at, 0), variance = of(Call::variance_at, 1);
    const auto gain = of(Call::gain_at, 1), offset = of(Call::offset_at, 0);
    for (size_t c = 0; c < scale.size(); ++c) {
        const double factor = gain[c] / std::sqrt(variance[c] + in.numbers[Call::eps_at]);
        scale[c] = static_cast<float>(factor);
        shift[c] = static_cast<float>((bias[c] - mean[c]) * factor + offset[c]);
    }
}

ConvPiece whole_piece(const Inputs& in, const ConvScales& scales, void* result) {
    ConvPiece piece{};
    piece.x = in.tensors[ConvCall::x_at].data;
    piece.weight = in.tensors[ConvCall::weight_at].data;
    piece.result = result;
    piece.scale = scales.scale.data();
    piece.shift = scales.shift.data();
    piece.finish = static_cast<ConvFinish>(integer(in, ConvCall::finish_at));
    piece.residual_last = in.numbers[ConvCall::residual_last_at] != 0;
    const View& residual = in.tensors[ConvCall::residual_at];
    if (residual.is_there()) piece.residual = residual.data;
    return piece;
}

}  // namespace twinkle_pack
