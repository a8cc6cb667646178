#pragma once
// What bias and batch normalization do to a sum of each channel: sum * scale + shift.

#include <memory>

#include "operator.h"

namespace twinkle_pack {

// scale = gain / sqrt(variance + eps), shift = (bias - mean) * scale + offset; made in double
// precision, whatever the dtypes are.
struct ConvScales {
    std::unique_ptr<float[]> scale, shift;

    ConvScales(const Inputs& in, int64_t channels);
};

}  // namespace twinkle_pack
