// Registers the operators in LibTorch 2.6 to 2.9, whose stable ABI is not complete yet.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <tuple>

#include "operators.h"

namespace {

using twinkle_pack::View;

View view_of(const at::Tensor& tensor) {
    return {tensor.is_meta() ? nullptr : tensor.const_data_ptr(),
            static_cast<int>(tensor.scalar_type()), tensor.dim(), tensor.sizes().data(),
            tensor.strides().data()};
}

at::Tensor readable(const at::Tensor& tensor) {
    return twinkle_pack::must_copy(view_of(tensor)) ? tensor.contiguous() : tensor;
}

at::Tensor empty(const at::Tensor& like, twinkle_pack::DType dtype) {
    const auto type = static_cast<at::ScalarType>(twinkle_pack::scalar_type_of(dtype));
    return at::empty(like.sizes(), like.options().dtype(type), at::MemoryFormat::Contiguous);
}

at::Tensor empty_like(const at::Tensor& like) {
    return at::empty(like.sizes(), like.options(), at::MemoryFormat::Contiguous);
}

void check_devices(const char* op, const at::Tensor& a, const at::Tensor& b) {
    TORCH_CHECK(a.device() == b.device(), "twinkle-pack: ", op,
                ": the tensors are on different devices, ", a.device(), " and ", b.device());
}

void parallel(int64_t end, int64_t grain, void (*body)(int64_t, int64_t, void*), void* context) {
    at::parallel_for(0, end, grain, [&](int64_t from, int64_t to) { body(from, to, context); });
}

// On the meta device shape and dtype are told alone.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
    check_devices("rms_norm", x, weight);
    at::Tensor result = empty(x, twinkle_pack::check_rms_norm(view_of(x), view_of(weight)));
    if (result.is_meta()) return result;
    const at::Tensor rows = readable(x), weights = readable(weight);
    twinkle_pack::rms_norm(view_of(rows), view_of(weights), eps, result.mutable_data_ptr(),
                           parallel);
    return result;
}

at::Tensor silu_mul(const at::Tensor& gate, const at::Tensor& up) {
    check_devices("silu_mul", gate, up);
    at::Tensor result = empty(gate, twinkle_pack::check_silu_mul(view_of(gate), view_of(up)));
    if (result.is_meta()) return result;
    const at::Tensor gates = readable(gate), ups = readable(up);
    twinkle_pack::silu_mul(view_of(gates), view_of(ups), result.mutable_data_ptr(), parallel);
    return result;
}

std::tuple<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& grad, const at::Tensor& x,
                                                     const at::Tensor& weight, double eps) {
    check_devices("rms_norm_backward", x, weight);
    check_devices("rms_norm_backward", x, grad);
    twinkle_pack::check_rms_norm_backward(view_of(grad), view_of(x), view_of(weight));
    at::Tensor grad_x = empty_like(x), grad_weight = empty_like(weight);
    if (!grad_x.is_meta()) {
        const at::Tensor grads = readable(grad), rows = readable(x), weights = readable(weight);
        twinkle_pack::rms_norm_backward(view_of(grads), view_of(rows), view_of(weights), eps,
                                        grad_x.mutable_data_ptr(), grad_weight.mutable_data_ptr(),
                                        parallel);
    }
    return {grad_x, grad_weight};
}

std::tuple<at::Tensor, at::Tensor> silu_mul_backward(const at::Tensor& grad, const at::Tensor& gate,
                                                     const at::Tensor& up) {
    check_devices("silu_mul_backward", gate, up);
    check_devices("silu_mul_backward", gate, grad);
    twinkle_pack::check_silu_mul_backward(view_of(grad), view_of(gate), view_of(up));
    at::Tensor grad_gate = empty_like(gate), grad_up = empty_like(up);
    if (!grad_gate.is_meta()) {
        const at::Tensor grads = readable(grad), gates = readable(gate), ups = readable(up);
        twinkle_pack::silu_mul_backward(view_of(grads), view_of(gates), view_of(ups),
                                        grad_gate.mutable_data_ptr(), grad_up.mutable_data_ptr(),
                                        parallel);
    }
    return {grad_gate, grad_up};
}

}  // namespace

// Macros of our own, so that the namespace is expanded before it becomes a string.
#define TWINKLE_PACK_LIBRARY(ns, m) TORCH_LIBRARY(ns, m)
#define TWINKLE_PACK_LIBRARY_IMPL(ns, key, m) TORCH_LIBRARY_IMPL(ns, key, m)

TWINKLE_PACK_LIBRARY(TWINKLE_PACK_ID, library) {
    library.def("rms_norm(Tensor x, Tensor weight, float eps) -> Tensor");
    library.def("silu_mul(Tensor gate, Tensor up) -> Tensor");
    library.def(
        "rms_norm_backward(Tensor grad, Tensor x, Tensor weight, float eps) -> (Tensor, Tensor)");
    library.def("silu_mul_backward(Tensor grad, Tensor gate, Tensor up) -> (Tensor, Tensor)");
}

TWINKLE_PACK_LIBRARY_IMPL(TWINKLE_PACK_ID, CPU, library) {
    library.impl("rms_norm", &rms_norm);
    library.impl("silu_mul", &silu_mul);
    library.impl("rms_norm_backward", &rms_norm_backward);
    library.impl("silu_mul_backward", &silu_mul_backward);
}

TWINKLE_PACK_LIBRARY_IMPL(TWINKLE_PACK_ID, Meta, library) {
    library.impl("rms_norm", &rms_norm);
    library.impl("silu_mul", &silu_mul);
    library.impl("rms_norm_backward", &rms_norm_backward);
    library.impl("silu_mul_backward", &silu_mul_backward);
}
