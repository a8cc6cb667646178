#include "runtime/kernels/own_target.h"

#include <torch/version.h>

namespace twinkle::runtime {

namespace {

target::Target find_target() {
    target::Runtime here;
    here.torch_version = TORCH_VERSION;
    here.torch = {TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR};
    // Set by the build, as in runtime.json: libtwinkle serves the one LibTorch it was built for.
    here.backend = target::parse_backend(TWINKLE_TORCH_BACKEND).value_or(target::Backend{});
    here.cxx11 = _GLIBCXX_USE_CXX11_ABI != 0;
    return target::complete_target({}, target::this_machine(), here);
}

}  // namespace

const target::Target& own_target() {
    static const target::Target target = find_target();
    return target;
}

}  // namespace twinkle::runtime
