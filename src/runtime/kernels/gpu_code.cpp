#include "runtime/kernels/gpu_code.h"

#include "base/text.h"
#include "kernel/archs.h"
#include "target/machine.h"
#include "twinkle/error.h"

#include <algorithm>

namespace twinkle::runtime {

void require_gpu_code(const MappedKernel& kernel) {
    const target::Machine& machine = target::this_machine();
    if (kernel.device != "cuda" || kernel.archs.empty() || !machine.may_have_cuda()) {
        return;
    }
    const auto driver = machine.cuda_driver();
    if (!driver || driver->gpus.empty() ||
        std::any_of(driver->gpus.begin(), driver->gpus.end(), [&](const target::Gpu& gpu) {
            return kernel::archs_support(kernel.archs, target::BackendKind::cuda, gpu.arch);
        })) {
        return;
    }
    std::vector<std::string> gpus;
    for (const target::Gpu& gpu : driver->gpus) {
        gpus.push_back(gpu.name + " (" + gpu.arch + ")");
    }
    throw Error(ErrorCode::refused,
                {.what = "the kernel " + kernel.name + " has no code for the GPU of this machine",
                 .where = kernel.path.string(),
                 .why = "it is built for " + base::join(kernel.archs, ", ") + "; here is " +
                        base::printable(base::join(gpus, ", ")),
                 .hint = "`twinkle versions` shows which builds fit this machine"});
}

}  // namespace twinkle::runtime
