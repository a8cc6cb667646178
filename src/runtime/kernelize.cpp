#include "twinkle/kernelize.h"

#include "runtime/kernelizer.h"
#include "twinkle/load.h"

namespace twinkle {

Report kernelize_with(torch::jit::Module& model, const Mapping& mapping,
                      const KernelizeOptions& options) {
    return runtime::Kernelizer(model, mapping, options).run();
}

Kernelized kernelize(const std::filesystem::path& model, const Mapping& mapping,
                     const KernelizeOptions& options) {
    Kernelized result{load(model), {}};
    result.report = kernelize_with(result.model, mapping, options);
    return result;
}

}  // namespace twinkle
