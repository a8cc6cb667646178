#pragma once
// Reading a kernelized model loads its kernels (model/needed_kernel.h); twinkle itself loads the
// kernels it wants before it reads a model.

namespace twinkle::runtime {

// During its lifetime, models that this thread reads load no kernel.
class NoKernelLoading {
public:
    NoKernelLoading();
    ~NoKernelLoading();
    NoKernelLoading(const NoKernelLoading&) = delete;
    NoKernelLoading& operator=(const NoKernelLoading&) = delete;

    static bool asked_for();
};

}  // namespace twinkle::runtime
