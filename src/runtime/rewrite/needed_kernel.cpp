#include "runtime/rewrite/needed_kernel.h"

#include "runtime/kernels/loaded_kernels.h"
#include "runtime/model/no_kernel_loading.h"
#include "runtime/rewrite/marker.h"

#include <torch/custom_class.h>

namespace twinkle::runtime {

namespace {

struct NeededKernel : torch::CustomClassHolder {
    explicit NeededKernel(std::string text) : marker(std::move(text)) {}
    std::string marker;
};

c10::intrusive_ptr<NeededKernel> read(const std::string& marker) {
    const auto kernel = parse_marker(marker);
    if (kernel && !NoKernelLoading::asked_for()) {
        load_named_kernels({*kernel}, "the model that is loaded", {});
    }
    return c10::make_intrusive<NeededKernel>(marker);
}

const auto kernel_class_registration =
    torch::class_<NeededKernel>("twinkle", "NeededKernel")
        .def_pickle([](const c10::intrusive_ptr<NeededKernel>& self) { return self->marker; },
                    [](const std::string& marker) { return read(marker); });

}  // namespace

c10::IValue needed_kernel(const std::string& marker) {
    return torch::make_custom_class<NeededKernel>(marker);
}

}  // namespace twinkle::runtime
