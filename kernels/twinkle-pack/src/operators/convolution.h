#pragma once
// What a call of conv2d asks for, whatever its layout.

#include "isa/functions.h"
#include "operator.h"
#include "operators/conv_scales.h"
#include "operators/images.h"

namespace twinkle_pack {

struct ConvCall {
    enum Argument {
        x_at,
        weight_at,
        bias_at,
        mean_at,
        variance_at,
        gain_at,
        offset_at,
        residual_at
    };
    enum Number {
        eps_at,
        residual_last_at,
        stride_at,
        padding_at = 4,
        dilation_at = 6,
        groups_at = 8,
        finish_at,
        layout_at
    };

    ConvShape shape{};  // of one group
    int64_t groups = 0;
    bool is_valid = false;

    explicit ConvCall(const Inputs& in);

    int64_t all_out_channels() const { return shape.out_channels * groups; }
    bool is_depthwise() const { return shape.channels == 1 && groups > 1; }
    bool is_result_shape(const View& view) const;
    // All but layouts.
    bool has_right_tensors(const Inputs& in) const;

private:
    bool read_plain(const View& weight, const View& x);
};

// All of a piece that does not depend on the layout; `scales` must outlive it.
ConvPiece whole_piece(const Inputs& in, const ConvScales& scales, void* result);

// What one group has of it. Elements have `size` bytes; so many lie between channels of the result.
ConvPiece piece_of_group(const ConvPiece& whole, int64_t group, int64_t size,
                         int64_t result_channel);

// Fewer products of numbers than this are not worth waking another thread.
constexpr int64_t conv_grain_products = 1 << 16;
inline int64_t conv_units_for(int64_t products) {
    const int64_t units = conv_grain_products / (products < 1 ? 1 : products);
    return units < 1 ? 1 : units;
}

// x with fewer channels is copied where channels lie last, what each pixel sees of it behind one
// another.
constexpr int64_t least_last_channels = 8;

// Where channels lie last. Whether the call is computed so: x or the weight has this layout, or the
// call asks for it, and the loops can.
bool is_computed_last(const Inputs& in);
void plan_last(const Inputs& in, Plan& plan);
void compute_last(const Inputs& in, void* const* results, ParallelFor parallel);

}  // namespace twinkle_pack
