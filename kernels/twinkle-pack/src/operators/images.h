#pragma once
// Images [count, channels, height, width], and windows that move over them.

#include "isa/functions.h"
#include "operator.h"

namespace twinkle_pack {

int64_t integer(const Inputs& in, int at);

// As PyTorch sees it, which gives results of such images in the same layout.
bool is_channels_last(const View& view);
// Whether the last `dims` dimensions are next to each other.
bool is_dense(const View& view, int64_t dims);
// Whether all of an image are, channels last.
bool is_dense_last(const View& view);

// Of a shape with kernel, stride, padding and dilation, all that x tells. False: LibTorch refuses
// that, or the loops have no room for it.
bool set_windows(const View& x, ConvShape& shape);

// Adds a result with the windows' size, perhaps with its channels last.
void add_image(const View& x, int64_t channels, const ConvShape& shape, Plan& plan,
               bool channels_last = false);

// The most that loops/conv_band.h needs for so many pixels and channels, in elements.
int64_t band_elements(const ConvShape& shape, int64_t pixels, int64_t channels);

}  // namespace twinkle_pack
