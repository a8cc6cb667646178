#include "runtime/kernels/package_code.h"

#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>
#include <torch/csrc/inductor/aoti_torch/tensor_converter.h>

#include <dlfcn.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace twinkle::runtime {

namespace {

template <typename Function>
void find(Function& function, void* library, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
}

// Models of a container work side by side; on a CPU each thread gets one.
constexpr unsigned most_models = 16;

// LibTorch's, which libtwinkle does not link: it serves the builds for CPUs as well.
void* current_cuda_stream(c10::DeviceIndex index) {
    using Current = std::int32_t (*)(std::int32_t, void**);
    static const Current current = [] {
        Current found = nullptr;
        if (void* cuda = ::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD); cuda != nullptr) {
            find(found, cuda, "aoti_torch_get_current_cuda_stream");
        }
        return found;
    }();
    void* stream = nullptr;
    TORCH_CHECK(current != nullptr && current(index, &stream) == 0,
                "this LibTorch does not tell its CUDA stream to compiled packages");
    return stream;
}

}  // namespace

// Declared as in torch/csrc/inductor/aoti_runtime/interface.h, with AtenTensorHandle for tensors.
struct PackageCode::Functions {
    int (*create)(void**, std::size_t, const char*, const char*) = nullptr;
    int (*input_count)(void*, std::size_t*) = nullptr;
    int (*output_count)(void*, std::size_t*) = nullptr;
    using Run = int (*)(void*, AtenTensorHandle*, std::size_t, AtenTensorHandle*, std::size_t,
                        void*, void*);
    Run run = nullptr;
    Run run_single_threaded = nullptr;          // null before LibTorch 2.7
    int (*last_error)(const char**) = nullptr;  // null in older ones
};

// A container is never deleted: the process may end while others still run.
struct PackageCode::Container {
    void* handle = nullptr;
    Functions::Run run = nullptr;
    // Set with one model, whose calls must not overlap. run() would wait for the GPU between two
    // calls.
    std::unique_ptr<std::mutex> one_at_a_time;
};

PackageCode::PackageCode(void* library, std::string name)
    : name_(std::move(name)), functions_(std::make_unique<Functions>()) {
    find(functions_->create, library, "AOTInductorModelContainerCreateWithDevice");
    find(functions_->input_count, library, "AOTInductorModelContainerGetNumInputs");
    find(functions_->output_count, library, "AOTInductorModelContainerGetNumOutputs");
    find(functions_->run, library, "AOTInductorModelContainerRun");
    find(functions_->run_single_threaded, library, "AOTInductorModelContainerRunSingleThreaded");
    find(functions_->last_error, library, "AOTInductorGetLastError");
    if (functions_->create == nullptr || functions_->input_count == nullptr ||
        functions_->output_count == nullptr || functions_->run == nullptr) {
        throw std::runtime_error("its library has none of the functions that AOTInductor writes");
    }
}

PackageCode::~PackageCode() = default;

void PackageCode::require_success(int error, const char* what) const {
    if (error == 0) {
        return;
    }
    const char* why = nullptr;
    if (functions_->last_error != nullptr) {
        functions_->last_error(&why);
    }
    TORCH_CHECK(false, "the compiled package ", name_, " ", what,
                why != nullptr && *why != '\0' ? std::string(": ") + why : std::string());
}

PackageCode::Container& PackageCode::container_on(c10::Device device, std::size_t inputs,
                                                  std::size_t results) {
    const std::scoped_lock lock(mutex_);
    auto& known = containers_[device.index()];
    if (known) {
        return *known;
    }
    auto made = std::make_unique<Container>();
    const bool one = !device.is_cpu() && functions_->run_single_threaded != nullptr;
    const unsigned models =
        one ? 1 : std::clamp(std::thread::hardware_concurrency(), 1u, most_models);
    require_success(functions_->create(&made->handle, models, device.str().c_str(), nullptr),
                    "cannot be started");
    std::size_t own_inputs = 0;
    std::size_t own_results = 0;
    require_success(functions_->input_count(made->handle, &own_inputs), "does not tell its inputs");
    require_success(functions_->output_count(made->handle, &own_results),
                    "does not tell its results");
    TORCH_CHECK(own_inputs == inputs && own_results == results, "the compiled package ", name_,
                " takes ", own_inputs, " tensors and returns ", own_results,
                ", and its metadata say ", inputs, " and ", results);
    made->run = one ? functions_->run_single_threaded : functions_->run;
    if (one) {
        made->one_at_a_time = std::make_unique<std::mutex>();
    }
    known = std::move(made);
    return *known;
}

std::vector<at::Tensor> PackageCode::run(const std::vector<at::Tensor>& inputs, std::size_t results,
                                         c10::Device device) {
    const c10::OptionalDeviceGuard guard(device);
    Container& container = container_on(device, inputs.size(), results);
    void* stream = device.is_cuda() ? current_cuda_stream(device.index()) : nullptr;
    auto handles = torch::aot_inductor::unsafe_alloc_new_handles_from_tensors(inputs);
    std::vector<AtenTensorHandle> outputs(results);
    std::unique_lock<std::mutex> lock;
    if (container.one_at_a_time) {
        lock = std::unique_lock(*container.one_at_a_time);
    }
    require_success(container.run(container.handle, handles.data(), handles.size(), outputs.data(),
                                  outputs.size(), stream, nullptr),
                    "fails");
    return torch::aot_inductor::alloc_tensors_by_stealing_from_handles(outputs.data(),
                                                                       outputs.size());
}

}  // namespace twinkle::runtime
