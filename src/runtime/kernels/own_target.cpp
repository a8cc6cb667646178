#include "runtime/kernels/own_target.h"

#include <c10/core/DeviceType.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <filesystem>

#include "target/torch_place.h"

namespace twinkle::runtime {

namespace {

// The LibTorch in this process: libtwinkle serves the CPU and the CUDA builds of its version.
std::optional<target::LibTorch> libtorch_here() {
    Dl_info info{};
    if (::dladdr(reinterpret_cast<const void*>(&c10::isValidDeviceType), &info) == 0) {
        return std::nullopt;
    }
    std::error_code ignored;
    return target::read_libtorch(std::filesystem::canonical(info.dli_fname, ignored).parent_path());
}

target::Target find_target() {
    target::Runtime here;
    here.torch_version = TORCH_VERSION;
    here.torch = {TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR};
    here.backend = target::parse_backend(TWINKLE_TORCH_BACKEND).value_or(target::Backend{});
    if (const auto torch = libtorch_here()) {
        here = target::with_libtorch(here, *torch);
    }
    here.cxx11 = _GLIBCXX_USE_CXX11_ABI != 0;
    return target::complete_target({}, target::this_machine(), here);
}

}  // namespace

const target::Target& own_target() {
    static const target::Target target = find_target();
    return target;
}

}  // namespace twinkle::runtime
