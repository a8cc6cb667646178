#include "twinkle/kernelize.h"

#include "runtime/kernelizer.h"
#include "runtime/model/model_file.h"
#include "runtime/registry/armed.h"
#include "twinkle/load.h"

namespace twinkle {

Report kernelize_with(torch::jit::Module& model, const Mapping& mapping,
                      const KernelizeOptions& options) {
    const auto armed = runtime::apply_armed(model);
    Report report = runtime::Kernelizer(model, mapping, options).run();
    if (armed) {
        report.sites.insert(report.sites.end(), armed->sites.begin(), armed->sites.end());
        report.warnings.insert(report.warnings.end(), armed->warnings.begin(),
                               armed->warnings.end());
    }
    return report;
}

Kernelized kernelize(const std::filesystem::path& model, const Mapping& mapping,
                     const KernelizeOptions& options) {
    load_required_kernels(model);
    Kernelized result{runtime::open_model(model), {}};
    result.report = kernelize_with(result.model, mapping, options);
    return result;
}

}  // namespace twinkle
