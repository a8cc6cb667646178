#pragma once
// What a twinkle::Kernel stands for.

#include "runtime/direct/package_functions.h"
#include "runtime/kernels/loaded_kernels.h"
#include "twinkle/kernel.h"

namespace twinkle {

struct Kernel::State {
    State(std::shared_ptr<const runtime::LoadedKernel> kernel, std::vector<std::string> said)
        : loaded(std::move(kernel)), functions(*loaded), warnings(std::move(said)) {}

    std::shared_ptr<const runtime::LoadedKernel> loaded;
    runtime::PackageFunctions functions;
    std::vector<std::string> warnings;
};

}  // namespace twinkle
