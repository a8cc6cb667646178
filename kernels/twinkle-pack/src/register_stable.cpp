// Registers the operators through LibTorch's stable ABI: one build serves every LibTorch from 2.10
// on. TORCH_TARGET_VERSION (set by the build) hides everything newer. The C functions are called
// directly: the C++ header torch/csrc/stable/library.h needs a newer libstdc++ than manylinux_2_28
// has.
//
// TWINKLE_PACK_CUDA: also for CUDA devices. TWINKLE_PACK_ON_HOST: the CUDA kernels instead of the
// CPU's, for tests without a GPU.
#include <torch/csrc/stable/c/shim.h>
#include <torch/headeronly/version.h>

#include <bit>
#include <cstring>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "operator.h"
#include "operators/linear_prepack.h"

#if defined(TWINKLE_PACK_CUDA) || defined(TWINKLE_PACK_ON_HOST)
#include "cuda/launches.h"
#endif

#ifdef TWINKLE_PACK_CUDA
// LibTorch's headers declare it only in builds with a CUDA toolkit.
extern "C" AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device, void** stream);
#endif

namespace {

using twinkle_pack::Inputs;
using twinkle_pack::Operator;
using twinkle_pack::Plan;
using twinkle_pack::View;

void check(AOTITorchError code) {
    if (code != 0) throw std::runtime_error("twinkle-pack: a call of LibTorch failed");
}

struct DeleteTensor {
    void operator()(AtenTensorHandle handle) const { aoti_torch_delete_tensor_object(handle); }
};

class Tensor {
public:
    Tensor() = default;
    explicit Tensor(AtenTensorHandle handle) : handle_(handle) {}
    explicit operator bool() const { return handle_ != nullptr; }

    static Tensor empty(int64_t dims, const int64_t* sizes, const int64_t* strides, int scalar_type,
                        std::pair<int32_t, int32_t> device) {
        AtenTensorHandle handle = nullptr;
        check(aoti_torch_empty_strided(dims, sizes, strides, scalar_type, device.first,
                                       device.second, &handle));
        return Tensor(handle);
    }

    View view(bool with_data) const {
        View view{};
        int64_t *sizes = nullptr, *strides = nullptr;
        check(aoti_torch_get_dtype(handle_.get(), &view.scalar_type));
        check(aoti_torch_get_dim(handle_.get(), &view.dims));
        check(aoti_torch_get_sizes(handle_.get(), &sizes));
        check(aoti_torch_get_strides(handle_.get(), &strides));
        if (with_data) check(torch_get_const_data_ptr(handle_.get(), &view.data));
        view.sizes = sizes;
        view.strides = strides;
        return view;
    }

    std::pair<int32_t, int32_t> device() const {
        std::pair<int32_t, int32_t> device;
        check(aoti_torch_get_device_type(handle_.get(), &device.first));
        check(aoti_torch_get_device_index(handle_.get(), &device.second));
        return device;
    }

    void* data() {
        void* data = nullptr;
        check(torch_get_mutable_data_ptr(handle_.get(), &data));
        return data;
    }

    void copy_from(const Tensor& other) {
        check(aoti_torch_copy_(handle_.get(), other.handle_.get(), 0));
    }

    // A view of the same memory.
    Tensor as(int64_t dims, const int64_t* sizes, const int64_t* strides) const {
        AtenTensorHandle handle = nullptr;
        check(aoti_torch__reinterpret_tensor(handle_.get(), dims, sizes, strides, 0, &handle));
        return Tensor(handle);
    }

    // Another handle of the same tensor.
    Tensor shared() const {
        AtenTensorHandle handle = nullptr;
        check(aoti_torch_new_tensor_handle(handle_.get(), &handle));
        return Tensor(handle);
    }

    AtenTensorHandle release() { return handle_.release(); }

private:
    std::unique_ptr<AtenTensorOpaque, DeleteTensor> handle_;
};

// A StableIValue holds a tensor's handle, or the bytes of a double.
Tensor take_tensor(StableIValue value) {
    return Tensor(std::bit_cast<AtenTensorHandle>(value));
}

StableIValue give_tensor(Tensor tensor) {
    return std::bit_cast<StableIValue>(tensor.release());
}

// An optional tensor is a pointer to its handle, which the callee deletes; null for none.
Tensor take_optional(StableIValue value) {
    const std::unique_ptr<StableIValue> inner(std::bit_cast<StableIValue*>(value));
    return inner ? take_tensor(*inner) : Tensor();
}

StableIValue give_optional(Tensor tensor) {
    if (!tensor) return 0;
    return std::bit_cast<StableIValue>(new StableIValue(give_tensor(std::move(tensor))));
}

bool take_bool(StableIValue value) {
    bool truth = false;
    std::memcpy(&truth, &value, sizeof truth);
    return truth;
}

void parallel(int64_t end, int64_t grain, void (*body)(int64_t, int64_t, void*), void* context) {
    check(torch_parallel_for(0, end, grain, body, context));
}

int64_t thread_count() {
    uint32_t count = 1;
    check(torch_get_num_threads(&count));
    return count;
}

// The arguments of a call; the handles on the stack are owned from here on.
struct Arguments {
    Tensor tensors[twinkle_pack::most_tensors];
    Inputs inputs;

    Arguments(const Operator& op, const StableIValue* stack) {
        int tensor = 0, number = 0;
        for (const char* kind = op.arguments; *kind; ++kind, ++stack) switch (*kind) {
                case 't': tensors[tensor++] = take_tensor(*stack); break;
                case 'o': tensors[tensor++] = take_optional(*stack); break;
                case 'f': inputs.numbers[number++] = std::bit_cast<double>(*stack); break;
                case 'w': inputs.config.way = std::bit_cast<int64_t>(*stack); break;
                case 'g': inputs.config.grain = std::bit_cast<int64_t>(*stack); break;
                case 'r': inputs.config.reading = std::bit_cast<int64_t>(*stack); break;
                case 'i':
                    inputs.numbers[number++] = static_cast<double>(std::bit_cast<int64_t>(*stack));
                    break;
                default: inputs.numbers[number++] = take_bool(*stack);
            }
        device = tensors[0].device();
        is_meta = device.first == aoti_torch_device_type_meta();
        for (int i = 0; i < tensor; ++i) {
            if (!tensors[i]) continue;
            if (i > 0 && tensors[i].device() != device)
                throw std::runtime_error(std::string("twinkle-pack: ") + op.name +
                                         ": the tensors are on different devices");
            inputs.tensors[i] = tensors[i].view(!is_meta);
        }
    }

    // Replaces inputs that the operator cannot read in place by dense copies.
    void make_readable(const Plan& plan) {
        for (int i = 0; i < twinkle_pack::most_tensors; ++i) {
            const View strided = inputs.tensors[i];
            if (!tensors[i] || plan.is_read_in_place(i)) continue;
            if (!twinkle_pack::must_copy(strided, plan)) continue;
            int64_t strides[twinkle_pack::most_dims];
            twinkle_pack::dense_strides(strided, plan, strides);
            Tensor copy =
                Tensor::empty(strided.dims, strided.sizes, strides, strided.scalar_type, device);
            copy.copy_from(tensors[i]);
            tensors[i] = std::move(copy);
            inputs.tensors[i] = tensors[i].view(true);
        }
    }

    // Replaces one by a copy, unless it is dense in the order of its dimensions.
    [[maybe_unused]] void make_dense(int i) {
        const View view = inputs.tensors[i];
        if (!tensors[i] || view.is_contiguous()) return;
        int64_t strides[twinkle_pack::most_dims], stride = 1;
        for (int64_t d = view.dims - 1; d >= 0; stride *= view.sizes[d--]) strides[d] = stride;
        Tensor copy = Tensor::empty(view.dims, view.sizes, strides, view.scalar_type, device);
        copy.copy_from(tensors[i]);
        tensors[i] = std::move(copy);
        inputs.tensors[i] = tensors[i].view(true);
    }

    std::pair<int32_t, int32_t> device;
    bool is_meta;
};

[[maybe_unused]] void compute_on_cpu(const Operator& op, Arguments& arguments, const Plan& plan,
                                     void* const* results) {
    arguments.make_readable(plan);
    op.compute(arguments.inputs, plan, results,
               {parallel, thread_count(), arguments.inputs.config.grain});
}

#if defined(TWINKLE_PACK_CUDA) || defined(TWINKLE_PACK_ON_HOST)
// Makes a device current during its lifetime.
class DeviceGuard {
public:
    explicit DeviceGuard(std::pair<int32_t, int32_t> device) {
        if (device.first != aoti_torch_device_type_cpu())
            check(aoti_torch_create_device_guard(device.second, &guard_));
    }
    DeviceGuard(const DeviceGuard&) = delete;
    DeviceGuard& operator=(const DeviceGuard&) = delete;
    ~DeviceGuard() {
        if (guard_) aoti_torch_delete_device_guard(guard_);
    }

private:
    DeviceGuardHandle guard_ = nullptr;
};

// A GPU cannot read an element at an address that is not a multiple of its size.
void check_addresses(const Operator& op, const Inputs& inputs) {
    for (const View& view : inputs.tensors) {
        if (!view.is_there() || view.elements() == 0) continue;
        const auto size = twinkle_pack::element_size(twinkle_pack::dtype_of(view));
        if (reinterpret_cast<uintptr_t>(view.data) % static_cast<uintptr_t>(size) != 0)
            throw std::runtime_error(std::string("twinkle-pack: ") + op.name +
                                     ": the elements of a tensor lie at addresses that their "
                                     "size does not divide; clone() it");
    }
}

void compute_on_cuda(const Operator& op, Arguments& arguments, const Plan& plan,
                     void* const* results) {
    check_addresses(op, arguments.inputs);
    const auto* const kernel = twinkle_pack::cuda::kernel_of(op.name);
    if (!kernel) throw std::logic_error(std::string("twinkle-pack: no CUDA kernel for ") + op.name);
    const DeviceGuard guard(arguments.device);
    twinkle_pack::cuda::Queue queue{nullptr, arguments.device.second, nullptr,
                                    arguments.inputs.config};
#ifdef TWINKLE_PACK_CUDA
    check(aoti_torch_get_current_cuda_stream(arguments.device.second, &queue.stream));
#endif
    const int64_t bytes = kernel->workspace ? kernel->workspace(arguments.inputs) : 0;
    Tensor workspace;
    if (bytes > 0) {
        const int64_t step = 1;
        workspace = Tensor::empty(1, &bytes, &step, aoti_torch_dtype_uint8(), arguments.device);
        queue.workspace = workspace.data();
    }
    kernel->launch(arguments.inputs, plan, results, queue);
}

void compute(const Operator& op, Arguments& arguments, const Plan& plan, void* const* results) {
#ifdef TWINKLE_PACK_CUDA
    if (arguments.device.first == aoti_torch_device_type_cpu())
        return compute_on_cpu(op, arguments, plan, results);
#endif
    compute_on_cuda(op, arguments, plan, results);
}
#else
void compute(const Operator& op, Arguments& arguments, const Plan& plan, void* const* results) {
    compute_on_cpu(op, arguments, plan, results);
}
#endif

bool is_on_cpu([[maybe_unused]] const Arguments& arguments) {
#ifdef TWINKLE_PACK_ON_HOST
    return false;
#else
    return arguments.device.first == aoti_torch_device_type_cpu();
#endif
}

// Whether a weight was laid out for a CPU.
bool has_panels(const Operator& op, const Arguments& arguments) {
    if (op.composition.weight) return false;
    for (int i = 0; i < op.composition.products; ++i)
        if (twinkle_pack::is_in_panels(arguments.inputs.tensors[1 + 2 * i])) return true;
    return false;
}

// Whether LibTorch computes this call.
bool is_composed(const Operator& op, const Arguments& arguments) {
    if (op.composition.products == 0 || arguments.is_meta) return false;
    if (is_on_cpu(arguments)) return op.serves && !op.serves(arguments.inputs);
    if (arguments.inputs.config.way == static_cast<int64_t>(twinkle_pack::Way::libtorch))
        return true;
    if (has_panels(op, arguments)) return true;
#if defined(TWINKLE_PACK_CUDA) || defined(TWINKLE_PACK_ON_HOST)
    const DeviceGuard guard(arguments.device);
    const auto* const kernel = twinkle_pack::cuda::kernel_of(op.name);
    return !kernel ||
           (kernel->serves && !kernel->serves(arguments.inputs, arguments.device.second));
#else
    return true;
#endif
}

void call(const Operator& op, StableIValue* stack);

// A product of several: on a GPU by the pack's own kernel, where that serves it.
void multiply(const Operator& op, const Arguments& arguments, StableIValue (&values)[5]) {
    if (op.composition.then || op.composition.products > 1)
        if (!is_on_cpu(arguments)) return call(twinkle_pack::find_operator("linear"), values);
    check(torch_call_dispatcher("aten::linear", "", values, TORCH_ABI_VERSION));
}

// As PyTorch has it.
Tensor plain(const Arguments& arguments, int weight) {
    const View& view = arguments.inputs.tensors[weight];
    if (!twinkle_pack::is_in_panels(view)) return arguments.tensors[weight].shared();
    const twinkle_pack::PlainOrder order(view);
    const int64_t* const sizes = order.sizes;
    const int64_t depth = sizes[2] * sizes[3];
    const int64_t dense[] = {sizes[1] * depth, depth, sizes[3], 1};
    Tensor copy =
        Tensor::empty(twinkle_pack::panel_dims, sizes, dense, view.scalar_type, arguments.device);
    copy.copy_from(arguments.tensors[weight].as(twinkle_pack::panel_dims, sizes, order.strides));
    const int64_t matrix[] = {sizes[0] * sizes[1], depth}, rows[] = {depth, 1};
    return copy.as(2, matrix, rows);
}

// A weight as numbers, of its values and scales.
Tensor unpacked(const Operator& op, const Arguments& arguments) {
    const auto& tensors = arguments.tensors;
    StableIValue values[] = {give_tensor(tensors[0].shared()), give_tensor(tensors[1].shared()),
                             give_tensor(tensors[2].shared())};
    call(twinkle_pack::find_operator(op.composition.weight), values);
    return take_tensor(values[0]);
}

#ifdef TWINKLE_PACK_CUDA
bool rounds(const Operator& op, const Arguments& arguments) {
    if (!op.composition.round || is_on_cpu(arguments)) return false;
    const DeviceGuard guard(arguments.device);
    const auto* const kernel = twinkle_pack::cuda::kernel_of(op.name);
    return kernel && kernel->rounds && kernel->rounds(arguments.inputs, arguments.device.second);
}

StableIValue give_dtype(int32_t dtype) {
    return std::bit_cast<StableIValue>(new StableIValue(static_cast<StableIValue>(dtype)));
}

// Tensor cores add up fp8 with some 14 bits. Of so many terms that is 0.1 % of the result where
// rounding to fp8 is 3.8 %, and 6 % if all have one sign; with more bits LibTorch takes a tenth
// more time, and at 129 to 192 rows more than an exact layer (bench/results/gpu_bits.md).
constexpr int64_t most_terms_in_few_bits = 4096;

// The rows of x rounded to fp8, too.
void compose_rounded(const Operator& op, const Arguments& arguments, StableIValue* stack) {
    const View &x = arguments.inputs.tensors[0], &weight = arguments.inputs.tensors[1];
    const int64_t depth = x.last_size(), rows = x.elements() / depth, outputs = weight.sizes[0];
    const int64_t matrix[] = {rows, depth}, row_by_row[] = {depth, 1};
    StableIValue rounded[2] = {give_tensor(arguments.tensors[0].as(2, matrix, row_by_row))};
    call(twinkle_pack::find_operator(op.composition.round), rounded);

    const int64_t transposed[] = {depth, outputs}, column_by_column[] = {1, depth};
    const int64_t one_row[] = {1, outputs}, dense_row[] = {outputs, 1};
    const bool has_bias = static_cast<bool>(arguments.tensors[3]);
    StableIValue values[] = {
        rounded[0],
        give_tensor(arguments.tensors[1].as(2, transposed, column_by_column)),
        rounded[1],
        give_tensor(arguments.tensors[2].as(2, one_row, dense_row)),
        give_optional(has_bias ? arguments.tensors[3].shared() : Tensor()),
        give_optional(Tensor()),  // a scale of the result
        give_dtype(aoti_torch_dtype_bfloat16()),
        depth <= most_terms_in_few_bits,
    };
    check(torch_call_dispatcher("aten::_scaled_mm", "", values, TORCH_ABI_VERSION));
    const Tensor product = take_tensor(values[0]);
    int64_t sizes[twinkle_pack::most_dims], strides[twinkle_pack::most_dims], stride = 1;
    for (int64_t d = x.dims - 1; d >= 0; stride *= sizes[d--]) {
        sizes[d] = d == x.dims - 1 ? outputs : x.sizes[d];
        strides[d] = stride;
    }
    stack[0] = give_tensor(product.as(x.dims, sizes, strides));
}
#endif

void compose(const Operator& op, Arguments& arguments, StableIValue* stack) {
#ifdef TWINKLE_PACK_CUDA
    if (rounds(op, arguments)) return compose_rounded(op, arguments, stack);
#endif
    const auto& tensors = arguments.tensors;
    const bool packed = op.composition.weight != nullptr;
    for (int i = 0; i < op.composition.products; ++i) {
        const Tensor& bias = tensors[packed ? 3 : 2 + 2 * i];
        Tensor weight = packed ? unpacked(op, arguments) : plain(arguments, 1 + 2 * i);
        StableIValue values[] = {give_tensor(tensors[0].shared()), give_tensor(std::move(weight)),
                                 give_optional(bias ? bias.shared() : Tensor()),
                                 0,  // the product's own configuration
                                 0};
        multiply(op, arguments, values);
        // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): who is called takes the values
        stack[i] = values[0];
    }
    if (!op.composition.then) return;
    // What follows takes the products, and has a configuration of its own.
    StableIValue values[] = {stack[0], op.composition.products > 1 ? stack[1] : 0, 0, 0};
    call(twinkle_pack::find_operator(op.composition.then), values);
    stack[0] = values[0];
}

// The meta device needs only shape and dtype.
void call(const Operator& op, StableIValue* stack) {
    Arguments arguments(op, stack);
    if (op.may_decline && (!is_on_cpu(arguments) || !op.serves(arguments.inputs))) {
        stack[0] = give_optional(Tensor());
        return;
    }
    Plan plan;
    op.plan(op.name, arguments.inputs, plan);
    // The kernels of packed weights take no strides, and to unpack a weight takes longer than this.
    if (op.composition.weight && !arguments.is_meta && !is_on_cpu(arguments))
        for (const int i : {0, 3}) arguments.make_dense(i);
    if (is_composed(op, arguments)) return compose(op, arguments, stack);
    Tensor results[twinkle_pack::most_results];
    for (int i = 0; i < plan.result_count; ++i) {
        const auto& result = plan.results[i];
        results[i] = Tensor::empty(result.dims, result.sizes, result.strides,
                                   twinkle_pack::scalar_type_of(result.dtype), arguments.device);
    }
    if (!arguments.is_meta) {
        void* data[twinkle_pack::most_results] = {};
        for (int i = 0; i < plan.result_count; ++i) data[i] = results[i].data();
        compute(op, arguments, plan, data);
    }
    for (int i = 0; i < plan.result_count; ++i)
        stack[i] = op.may_decline ? give_optional(std::move(results[i]))
                                  : give_tensor(std::move(results[i]));
}

// A boxed kernel gets only its arguments, so each operator has one of its own.
template <int index>
void boxed(StableIValue* stack, uint64_t, uint64_t) {
    call(twinkle_pack::operators()[index], stack);
}

// Registered during its lifetime, that is, while the library is loaded.
class Registration {
public:
    Registration() {
        const char* const id = TWINKLE_PACK_ID;
        check(aoti_torch_library_init_def(id, __FILE__, __LINE__, &libraries_[0]));
        for (int i = 0; i < twinkle_pack::operator_count; ++i) {
            const Operator& op = twinkle_pack::operators()[i];
            check(aoti_torch_library_def(libraries_[0], op.schema));
        }
        int used = 1;
        for (const char* key : keys) {
            TorchLibraryHandle& library = libraries_[used++];
            check(aoti_torch_library_init_impl(id, key, __FILE__, __LINE__, &library));
            implement_all(library, std::make_integer_sequence<int, twinkle_pack::operator_count>());
        }
    }
    ~Registration() {
        for (TorchLibraryHandle library : libraries_)
            if (library) aoti_torch_delete_library_object(library);
    }

private:
    template <int... index>
    static void implement_all(TorchLibraryHandle library, std::integer_sequence<int, index...>) {
        (check(torch_library_impl(library, twinkle_pack::operators()[index].name, boxed<index>,
                                  TORCH_ABI_VERSION)),
         ...);
    }

#ifdef TWINKLE_PACK_CUDA
    static constexpr const char* keys[] = {"CPU", "CUDA", "Meta"};
#else
    static constexpr const char* keys[] = {"CPU", "Meta"};
#endif
    TorchLibraryHandle libraries_[1 + std::size(keys)] = {};
};

const Registration registration;

}  // namespace
