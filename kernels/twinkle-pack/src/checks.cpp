// What the operators refuse, in words for the person who called them.
#include <optional>
#include <stdexcept>

#include "operators.h"

namespace twinkle_pack {
namespace {

std::string shape_text(const View& view) {
    std::string text = "[";
    for (int64_t d = 0; d < view.dims; ++d) text += (d ? ", " : "") + std::to_string(view.sizes[d]);
    return text + "]";
}

[[noreturn]] void refuse(const std::string& op, const std::string& why) {
    throw std::runtime_error("twinkle-pack: " + op + ": " + why);
}

DType supported_dtype(const std::string& op, const char* argument, const View& view) {
    for (DType dtype : {DType::float32, DType::bfloat16, DType::float16, DType::float64})
        if (scalar_type_of(dtype) == view.scalar_type) return dtype;
    refuse(op, std::string(argument) + " is " + dtype_name(view.scalar_type) +
                   "; supported are float32, bfloat16, float16 and float64");
}

bool same_shape(const View& a, const View& b) {
    bool equal = a.dims == b.dims;
    for (int64_t d = 0; equal && d < a.dims; ++d) equal = a.sizes[d] == b.sizes[d];
    return equal;
}

// The gradient is that of a result of this shape and dtype.
void check_gradient(const std::string& op, const View& grad, const View& shape, DType dtype) {
    if (grad.scalar_type != scalar_type_of(dtype))
        refuse(op, "grad is " + dtype_name(grad.scalar_type) + " but the result was " +
                       dtype_name(scalar_type_of(dtype)));
    if (!same_shape(grad, shape))
        refuse(op, "grad must have the result's shape " + shape_text(shape) + ", but has " +
                       shape_text(grad));
}

}  // namespace

DType check_rms_norm(const View& x, const View& weight) {
    const DType x_dtype = supported_dtype("rms_norm", "x", x);
    const DType weight_dtype = supported_dtype("rms_norm", "weight", weight);
    if (x.dims == 0) refuse("rms_norm", "x has no dimension to normalize over");
    if (weight.dims != 1 || weight.sizes[0] != x.sizes[x.dims - 1])
        refuse("rms_norm", "weight must have the shape [" + std::to_string(x.sizes[x.dims - 1]) +
                               "] of x's last dimension, but has " + shape_text(weight) +
                               " (x: " + shape_text(x) + ")");
    if (x_dtype == weight_dtype) return x_dtype;
    const bool wide = x_dtype == DType::float64 || weight_dtype == DType::float64;
    return wide ? DType::float64 : DType::float32;
}

DType check_silu_mul(const View& gate, const View& up) {
    const DType dtype = supported_dtype("silu_mul", "gate", gate);
    if (supported_dtype("silu_mul", "up", up) != dtype)
        refuse("silu_mul", "gate is " + dtype_name(gate.scalar_type) + " but up is " +
                               dtype_name(up.scalar_type));
    if (!same_shape(gate, up))
        refuse("silu_mul", "gate and up must have one shape, but have " + shape_text(gate) +
                               " and " + shape_text(up));
    return dtype;
}

void check_rms_norm_backward(const View& grad, const View& x, const View& weight) {
    check_gradient("rms_norm_backward", grad, x, check_rms_norm(x, weight));
}

void check_silu_mul_backward(const View& grad, const View& gate, const View& up) {
    check_gradient("silu_mul_backward", grad, gate, check_silu_mul(gate, up));
}

}  // namespace twinkle_pack
