#include "runtime/kernels/own_target.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>
#include <torch/version.h>

namespace twinkle::runtime {

namespace {

// Asks the LibTorch in this process itself: its files may be out of reach here. libtwinkle serves
// the CPU and the CUDA builds of its version.
target::Backend backend_here() {
    const auto built = target::parse_backend(TWINKLE_TORCH_BACKEND).value_or(target::Backend{});
    if (built.kind == target::BackendKind::rocm) {
        return built;
    }
    void* cuda = ::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD);
    if (cuda == nullptr || !at::CUDAHooksRegistry()->Has("CUDAHooks")) {
        return {};
    }
    ::dlclose(cuda);
    const long version = at::detail::getCUDAHooks().versionCUDART();  // 13000; starts no driver
    return {target::BackendKind::cuda, target::Version{static_cast<int>(version / 1000),
                                                       static_cast<int>(version % 1000 / 10)}};
}

target::Target find_target() {
    target::Runtime here;
    here.torch_version = TORCH_VERSION;
    here.torch = {TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR};
    here.backend = backend_here();
    here.cxx11 = _GLIBCXX_USE_CXX11_ABI != 0;
    return target::complete_target({}, target::this_machine(), here);
}

}  // namespace

const target::Target& own_target() {
    static const target::Target target = find_target();
    return target;
}

}  // namespace twinkle::runtime
