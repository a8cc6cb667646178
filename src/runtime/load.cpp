#include "twinkle/load.h"

#include "runtime/kernels/kernel_finder.h"
#include "runtime/kernels/loaded_kernels.h"
#include "runtime/model/model_file.h"
#include "runtime/registry/armed.h"
#include "runtime/rewrite/marker.h"
#include "twinkle/error.h"

#include <optional>

namespace twinkle {

void runtime::load_named_kernels(const std::vector<RequiredKernel>& required,
                                 const std::filesystem::path& model, const LoadOptions& options) {
    std::optional<KernelFinder> finder;
    for (const RequiredKernel& kernel : required) {
        if (!is_loaded(kernel.build_id)) {
            if (!finder) {
                finder.emplace(options.kernel_dirs, options.explain);
            }
            load_kernel(finder->find(kernel, model));
        }
    }
}

std::vector<RequiredKernel> required_kernels(const std::filesystem::path& model) {
    return runtime::markers_in(runtime::code_of(model));
}

void load_required_kernels(const std::filesystem::path& model, const LoadOptions& options) {
    runtime::load_named_kernels(required_kernels(model), model, options);
}

void load_required_kernels(const std::shared_ptr<caffe2::serialize::ReadAdapterInterface>& model,
                           const LoadOptions& options) {
    runtime::load_named_kernels(runtime::markers_in(runtime::code_of(model)),
                                "a model from a stream", options);
}

torch::jit::Module load(const std::filesystem::path& model, const LoadOptions& options) {
    load_required_kernels(model, options);
    torch::jit::Module loaded = runtime::open_model(model, options.device);
    const auto report = runtime::apply_armed(loaded);
    if (report && options.explain) {
        for (const SiteReport& site : report->sites) {
            options.explain(site.site + ": " + site_status_name(site.status) + ", " + site.because);
        }
    }
    return loaded;
}

}  // namespace twinkle
