#include "operators/checks.h"

#include <stdexcept>

namespace twinkle_pack {
namespace {

bool same_shape(const View& a, const View& b) {
    bool equal = a.dims == b.dims;
    for (int64_t d = 0; equal && d < a.dims; ++d) equal = a.sizes[d] == b.sizes[d];
    return equal;
}

}  // namespace

void refuse(const std::string& op, const std::string& why) {
    throw std::runtime_error("twinkle-pack: " + op + ": " + why);
}

std::string shape_text(const View& view) {
    std::string text = "[";
    for (int64_t d = 0; d < view.dims; ++d) text += (d ? ", " : "") + std::to_string(view.sizes[d]);
    return text + "]";
}

DType supported_dtype(const char* op, const char* argument, const View& view) {
    if (!is_supported(view.scalar_type))
        refuse(op, std::string(argument) + " is " + dtype_name(view.scalar_type) +
                       "; supported are float32, bfloat16, float16 and float64");
    return dtype_of(view);
}

DType same_kind(const char* op, const char* a_name, const View& a, const char* b_name,
                const View& b) {
    const DType dtype = supported_dtype(op, a_name, a);
    if (supported_dtype(op, b_name, b) != dtype)
        refuse(op, std::string(a_name) + " is " + dtype_name(a.scalar_type) + " but " + b_name +
                       " is " + dtype_name(b.scalar_type));
    if (!same_shape(a, b))
        refuse(op, std::string(a_name) + " and " + b_name + " must have one shape, but have " +
                       shape_text(a) + " and " + shape_text(b));
    return dtype;
}

void check_row(const char* op, const char* argument, const View& row, const View& x) {
    if (row.dims != 1 || row.sizes[0] != x.last_size())
        refuse(op, std::string(argument) + " must have the shape [" +
                       std::to_string(x.last_size()) + "] of x's last dimension, but has " +
                       shape_text(row) + " (x: " + shape_text(x) + ")");
}

void check_gradient(const char* op, const View& grad, const View& shape, DType dtype) {
    if (grad.scalar_type != scalar_type_of(dtype))
        refuse(op, "grad is " + dtype_name(grad.scalar_type) + " but the result was " +
                       dtype_name(scalar_type_of(dtype)));
    if (!same_shape(grad, shape))
        refuse(op, "grad must have the result's shape " + shape_text(shape) + ", but has " +
                       shape_text(grad));
}

DType promoted(DType a, DType b) {
    if (a == b) return a;
    const bool wide = a == DType::float64 || b == DType::float64;
    return wide ? DType::float64 : DType::float32;
}

}  // namespace twinkle_pack
