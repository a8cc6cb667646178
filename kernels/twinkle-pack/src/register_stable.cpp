// Registers the operators through LibTorch's stable ABI: one build serves every LibTorch from 2.10
// on. TORCH_TARGET_VERSION (set by the build) hides everything newer. The C functions are called
// directly: the C++ header torch/csrc/stable/library.h needs a newer libstdc++ than manylinux_2_28
// has.
#include <torch/csrc/stable/c/shim.h>
#include <torch/headeronly/version.h>

#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

#include "operators.h"

namespace {

using twinkle_pack::DType;
using twinkle_pack::View;

void check(AOTITorchError code) {
    if (code != 0) throw std::runtime_error("twinkle-pack: a call of LibTorch failed");
}

class Tensor {
public:
    explicit Tensor(AtenTensorHandle handle) : handle_(handle) {}
    Tensor(Tensor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Tensor& operator=(Tensor&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Tensor() {
        if (handle_) aoti_torch_delete_tensor_object(handle_);
    }

    static Tensor empty(const View& like, int scalar_type, std::pair<int32_t, int32_t> device) {
        // Contiguous strides. More dimensions than these do not exist in practice.
        int64_t strides[64];
        if (like.dims > 64)
            throw std::runtime_error("twinkle-pack: tensors of more than 64 dimensions");
        int64_t step = 1;
        for (int64_t d = like.dims - 1; d >= 0; --d) {
            strides[d] = step;
            step *= like.sizes[d] > 1 ? like.sizes[d] : 1;
        }
        AtenTensorHandle handle = nullptr;
        check(aoti_torch_empty_strided(like.dims, like.sizes, strides, scalar_type, device.first,
                                       device.second, &handle));
        return Tensor(handle);
    }

    static Tensor like(const Tensor& other) {
        const View view = other.view();
        return empty(view, view.scalar_type, other.device());
    }

    View view() const {
        View view{};
        int64_t *sizes = nullptr, *strides = nullptr;
        check(aoti_torch_get_dtype(handle_, &view.scalar_type));
        check(aoti_torch_get_dim(handle_, &view.dims));
        check(aoti_torch_get_sizes(handle_, &sizes));
        check(aoti_torch_get_strides(handle_, &strides));
        if (!is_meta()) check(torch_get_const_data_ptr(handle_, &view.data));
        view.sizes = sizes;
        view.strides = strides;
        return view;
    }

    std::pair<int32_t, int32_t> device() const {
        std::pair<int32_t, int32_t> device;
        check(aoti_torch_get_device_type(handle_, &device.first));
        check(aoti_torch_get_device_index(handle_, &device.second));
        return device;
    }

    bool is_meta() const { return device().first == aoti_torch_device_type_meta(); }

    void* data() {
        void* data = nullptr;
        check(torch_get_mutable_data_ptr(handle_, &data));
        return data;
    }

    // The tensor itself, or a contiguous copy where the operators cannot read it as it lies.
    void make_readable() {
        const View strided = view();
        if (!twinkle_pack::must_copy(strided)) return;
        Tensor copy = empty(strided, strided.scalar_type, device());
        check(aoti_torch_copy_(copy.handle_, handle_, 0));
        *this = std::move(copy);
    }

    AtenTensorHandle release() { return std::exchange(handle_, nullptr); }

private:
    AtenTensorHandle handle_;
};

// What a StableIValue holds: a tensor's handle, or the bytes of a double.
Tensor take_tensor(StableIValue value) {
    return Tensor(reinterpret_cast<AtenTensorHandle>(static_cast<uintptr_t>(value)));
}

StableIValue give_tensor(Tensor tensor) {
    return static_cast<StableIValue>(reinterpret_cast<uintptr_t>(tensor.release()));
}

double take_double(StableIValue value) {
    double number = 0;
    static_assert(sizeof number == sizeof value);
    std::memcpy(&number, &value, sizeof number);
    return number;
}

void check_devices(const char* op, const Tensor& a, const Tensor& b) {
    if (a.device() != b.device())
        throw std::runtime_error(std::string("twinkle-pack: ") + op +
                                 ": the tensors are on different devices");
}

void parallel(int64_t end, int64_t grain, void (*body)(int64_t, int64_t, void*), void* context) {
    check(torch_parallel_for(0, end, grain, body, context));
}

// Boxed kernels: they own the handles on the stack and leave the result there. On the meta device
// they tell shape and dtype alone.
void rms_norm(StableIValue* stack, uint64_t, uint64_t) {
    Tensor x = take_tensor(stack[0]), weight = take_tensor(stack[1]);
    const double eps = take_double(stack[2]);
    check_devices("rms_norm", x, weight);
    const DType dtype = twinkle_pack::check_rms_norm(x.view(), weight.view());
    Tensor result = Tensor::empty(x.view(), twinkle_pack::scalar_type_of(dtype), x.device());
    if (!result.is_meta()) {
        x.make_readable();
        weight.make_readable();
        twinkle_pack::rms_norm(x.view(), weight.view(), eps, result.data(), parallel);
    }
    stack[0] = give_tensor(std::move(result));
}

void silu_mul(StableIValue* stack, uint64_t, uint64_t) {
    Tensor gate = take_tensor(stack[0]), up = take_tensor(stack[1]);
    check_devices("silu_mul", gate, up);
    const DType dtype = twinkle_pack::check_silu_mul(gate.view(), up.view());
    Tensor result = Tensor::empty(gate.view(), twinkle_pack::scalar_type_of(dtype), gate.device());
    if (!result.is_meta()) {
        gate.make_readable();
        up.make_readable();
        twinkle_pack::silu_mul(gate.view(), up.view(), result.data(), parallel);
    }
    stack[0] = give_tensor(std::move(result));
}

void rms_norm_backward(StableIValue* stack, uint64_t, uint64_t) {
    Tensor grad = take_tensor(stack[0]), x = take_tensor(stack[1]), weight = take_tensor(stack[2]);
    const double eps = take_double(stack[3]);
    check_devices("rms_norm_backward", x, weight);
    check_devices("rms_norm_backward", x, grad);
    twinkle_pack::check_rms_norm_backward(grad.view(), x.view(), weight.view());
    Tensor grad_x = Tensor::like(x), grad_weight = Tensor::like(weight);
    if (!grad_x.is_meta()) {
        for (Tensor* input : {&grad, &x, &weight}) input->make_readable();
        twinkle_pack::rms_norm_backward(grad.view(), x.view(), weight.view(), eps, grad_x.data(),
                                        grad_weight.data(), parallel);
    }
    stack[0] = give_tensor(std::move(grad_x));
    stack[1] = give_tensor(std::move(grad_weight));
}

void silu_mul_backward(StableIValue* stack, uint64_t, uint64_t) {
    Tensor grad = take_tensor(stack[0]), gate = take_tensor(stack[1]), up = take_tensor(stack[2]);
    check_devices("silu_mul_backward", gate, up);
    check_devices("silu_mul_backward", gate, grad);
    twinkle_pack::check_silu_mul_backward(grad.view(), gate.view(), up.view());
    Tensor grad_gate = Tensor::like(gate), grad_up = Tensor::like(up);
    if (!grad_gate.is_meta()) {
        for (Tensor* input : {&grad, &gate, &up}) input->make_readable();
        twinkle_pack::silu_mul_backward(grad.view(), gate.view(), up.view(), grad_gate.data(),
                                        grad_up.data(), parallel);
    }
    stack[0] = give_tensor(std::move(grad_gate));
    stack[1] = give_tensor(std::move(grad_up));
}

// Registered while this object lives, that is, while the library is loaded.
class Registration {
public:
    Registration() {
        const char* const id = TWINKLE_PACK_ID;
        check(aoti_torch_library_init_def(id, __FILE__, __LINE__, &libraries_[0]));
        for (const char* schema :
             {"rms_norm(Tensor x, Tensor weight, float eps) -> Tensor",
              "silu_mul(Tensor gate, Tensor up) -> Tensor",
              "rms_norm_backward(Tensor grad, Tensor x, Tensor weight, float eps) -> (Tensor, "
              "Tensor)",
              "silu_mul_backward(Tensor grad, Tensor gate, Tensor up) -> (Tensor, Tensor)"})
            check(aoti_torch_library_def(libraries_[0], schema));
        int used = 1;
        for (const char* key : {"CPU", "Meta"}) {
            TorchLibraryHandle& library = libraries_[used++];
            check(aoti_torch_library_init_impl(id, key, __FILE__, __LINE__, &library));
            check(torch_library_impl(library, "rms_norm", rms_norm, TORCH_ABI_VERSION));
            check(torch_library_impl(library, "silu_mul", silu_mul, TORCH_ABI_VERSION));
            check(torch_library_impl(library, "rms_norm_backward", rms_norm_backward,
                                     TORCH_ABI_VERSION));
            check(torch_library_impl(library, "silu_mul_backward", silu_mul_backward,
                                     TORCH_ABI_VERSION));
        }
    }
    ~Registration() {
        for (TorchLibraryHandle library : libraries_)
            if (library) aoti_torch_delete_library_object(library);
    }

private:
    TorchLibraryHandle libraries_[3] = {};
};

const Registration registration;

}  // namespace
