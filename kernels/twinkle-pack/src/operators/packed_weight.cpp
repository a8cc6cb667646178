#include "operators/packed_weight.h"

#include "isa/functions.h"
#include "operators/checks.h"

namespace twinkle_pack {
namespace {

// LibTorch's numbers of these dtypes.
constexpr int uint8 = 0, float32 = 6;

bool is_dense(const View& view) {
    return view.dims == 2 && (view.sizes[1] == 1 || view.strides[1] == 1) &&
           (view.sizes[0] == 1 || view.strides[0] == view.sizes[1]);
}

}  // namespace

DType packed_dtype(const char* op, const View& x) {
    const DType dtype = supported_dtype(op, "x", x);
    if (dtype == DType::float64) refuse(op, "x is float64");
    if (x.dims == 0 || x.last_size() == 0 || x.last_size() % bits_group != 0)
        refuse(op, "the last size of x is no multiple of 64: " + shape_text(x));
    return dtype;
}

void check_packed(const char* op, const View& x, const View& values, const View& scales,
                  Packed packed) {
    const int64_t depth = packed == Packed::int4 ? x.last_size() / 2 : x.last_size();
    const bool is_fp8 = packed == Packed::fp8;
    if (values.dims != 2 || values.sizes[1] != depth ||
        values.scalar_type != (is_fp8 ? scalar_type_fp8 : uint8) || !is_dense(values))
        refuse(op, std::string("the values are no dense ") + (is_fp8 ? "float8_e4m3fn" : "uint8") +
                       " weight that fits x, " + shape_text(x) + ": " + shape_text(values));
    const int64_t of_a_row = is_fp8 ? 1 : x.last_size() / bits_group;
    if (scales.dims != 2 || scales.sizes[0] != values.sizes[0] || scales.sizes[1] != of_a_row ||
        scales.scalar_type != float32 || !is_dense(scales))
        refuse(op, is_fp8 ? "the scales are no dense float32 tensor with one for each row: " +
                                shape_text(scales)
                          : "the scales are no dense float32 tensor with one for each 64 values: " +
                                shape_text(scales));
}

void check_bias(const char* op, const View& x, const View& values, const View& bias) {
    if (bias.is_there() &&
        (bias.dims != 1 || bias.sizes[0] != values.sizes[0] || bias.scalar_type != x.scalar_type))
        refuse(op, "the bias is " + shape_text(bias) + ", " + dtype_name(bias.scalar_type) +
                       ", which does not fit");
}

}  // namespace twinkle_pack
