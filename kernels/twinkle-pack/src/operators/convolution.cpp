#include "operators/convolution.h"

#include <algorithm>

#include "operators/conv_prepack.h"

namespace twinkle_pack {
namespace {

bool has_one_for_each_channel(const View& view, int64_t channels, int dtype, bool may_be_float) {
    return view.dims == 1 && view.sizes[0] == channels &&
           (view.scalar_type == dtype ||
            (may_be_float && view.scalar_type == scalar_type_of(DType::float32)));
}

}  // namespace

ConvCall::ConvCall(const Inputs& in) {
    const View &x = in.tensors[x_at], &weight = in.tensors[weight_at];
    if (x.dims != 4) return;
    groups = integer(in, groups_at);
    const int64_t finish = integer(in, finish_at);
    if (finish < 0 || finish >= conv_finish_count) return;
    const bool is_read = weight.dims == 4 ? read_plain(weight, x)
                                          : groups == 1 && read_blocks(weight, x.sizes[1], shape);
    if (!is_read) return;
    for (int d = 0; d < 2; ++d) {
        shape.stride[d] = integer(in, stride_at + d);
        shape.padding[d] = integer(in, padding_at + d);
        shape.dilation[d] = integer(in, dilation_at + d);
    }
    is_valid = set_windows(x, shape);
    shape.result_image = all_out_channels() * shape.out_pixels;
}

bool ConvCall::read_plain(const View& weight, const View& x) {
    if (groups < 1 || weight.sizes[0] < 1 || weight.sizes[0] % groups != 0) return false;
    shape.channels = weight.sizes[1];
    shape.out_channels = weight.sizes[0] / groups;
    for (int d = 0; d < 2; ++d) shape.kernel[d] = weight.sizes[2 + d];
    return shape.channels >= 1 && shape.channels <= x.sizes[1] &&
           shape.channels * groups == x.sizes[1];
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

ConvPiece whole_piece(const Inputs& in, const ConvScales& scales, void* result) {
    ConvPiece piece{};
    piece.x = in.tensors[ConvCall::x_at].data;
    piece.weight = in.tensors[ConvCall::weight_at].data;
    piece.result = result;
    piece.scale = scales.scale.get();
    piece.shift = scales.shift.get();
    piece.finish = static_cast<ConvFinish>(integer(in, ConvCall::finish_at));
    piece.residual_last = in.numbers[ConvCall::residual_last_at] != 0;
    const View& residual = in.tensors[ConvCall::residual_at];
    if (residual.is_there()) piece.residual = residual.data;
    return piece;
}

ConvPiece piece_of_group(const ConvPiece& whole, int64_t group, int64_t size,
                         int64_t result_channel) {
    const ConvShape& shape = *whole.shape;
    const int64_t channel = group * shape.out_channels;
    const auto moved = [&](const void* from, int64_t by) {
        return from ? static_cast<const char*>(from) + by * size : nullptr;
    };
    ConvPiece piece = whole;
    piece.x = moved(whole.x, group * shape.channels * shape.x_channel);
    piece.weight = moved(whole.weight, channel * shape.depth);
    piece.residual = moved(whole.residual, channel * shape.residual_channel);
    piece.result = static_cast<char*>(whole.result) + channel * result_channel * size;
    piece.scale += channel;
    piece.shift += channel;
    return piece;
}

}  // namespace twinkle_pack
