#include "runtime/model/needed_kernel.h"

#include "runtime/kernels/loaded_kernels.h"
#include "runtime/model/marker.h"
#include "runtime/model/no_kernel_loading.h"

#include <torch/custom_class.h>

namespace twinkle::runtime {

namespace {

struct NeededKernel : torch::CustomClassHolder {
    explicit NeededKernel(std::string text) : marker(std::move(text)) {}
    std::string marker;
};

c10::intrusive_ptr<NeededKernel> needed_kernel_of(const std::string& marker) {
    const auto kernel = parse_marker(marker);
    if (kernel && !NoKernelLoading::asked_for()) {
        load_named_kernels({*kernel}, "the model that is loaded", {});
    }
    return c10::make_intrusive<NeededKernel>(marker);
}

const auto kernel_class_registration =
    torch::class_<NeededKernel>("twinkle", "NeededKernel")
        .def_pickle([](const c10::intrusive_ptr<NeededKernel>& self) { return self->marker; },
                    [](const std::string& marker) { return needed_kernel_of(marker); });

}  // namespace

c10::IValue needed_kernel(const std::string& marker) {
    return torch::make_custom_class<NeededKernel>(marker);
}

}  // namespace twinkle::runtime
