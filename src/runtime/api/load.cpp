#include "twinkle/load.h"

#include "base/file.h"
#include "runtime/exported/needed_kernels.h"
#include "runtime/exported/opened_file.h"
#include "runtime/kernels/kernel_finder.h"
#include "runtime/kernels/loaded_kernels.h"
#include "runtime/model/marker.h"
#include "runtime/model/program_function.h"
#include "runtime/prepack/prepacked_weights.h"
#include "runtime/registry/pending.h"
#include "runtime/tuning/server_record.h"
#include "twinkle/error.h"

#include <algorithm>
#include <optional>

namespace twinkle {

void runtime::load_named_kernels(const std::vector<RequiredKernel>& required,
                                 const std::filesystem::path& model, const LoadOptions& options,
                                 const KernelProvider& provider) {
    std::optional<KernelFinder> finder;
    for (const RequiredKernel& kernel : required) {
        if (!is_loaded(kernel.build_id)) {
            if (!finder) {
                finder.emplace(options.kernel_dirs, options.explain);
            }
            provider(finder->find(kernel, model));
        }
    }
}

namespace {

// The kernels that this code names, if all of it can run in this program.
std::vector<RequiredKernel> kernels_for(const std::vector<runtime::CodeFile>& code,
                                        const std::filesystem::path& model) {
    for (const runtime::CodeFile& file : code) {
        const std::string function = runtime::foreign_program_function(file.text);
        if (!function.empty()) {
            runtime::refuse_program_function(function, base::display_path(model));
        }
    }
    return runtime::markers_in(code);
}

}  // namespace

std::vector<RequiredKernel> required_kernels(const std::filesystem::path& model) {
    return runtime::markers_in(runtime::code_of_model_file(model));
}

bool runtime::load_required_kernels(const std::filesystem::path& model, const LoadOptions& options,
                                    const KernelProvider& provider) {
    if (is_export(model)) {
        const KernelFinder finder(options.kernel_dirs, options.explain);
        const auto kernels = kernels_of_export(model, options.model, finder);
        std::for_each(kernels.begin(), kernels.end(), provider);
        return !kernels.empty();
    }
    const auto required = kernels_for(code_of(model), model);
    load_named_kernels(required, model, options, provider);
    return !required.empty();
}

void load_required_kernels(const std::filesystem::path& model, const LoadOptions& options) {
    runtime::record_as_environment_says();
    runtime::load_required_kernels(model, options, runtime::load_kernel);
}

void load_required_kernels(const std::shared_ptr<caffe2::serialize::ReadAdapterInterface>& model,
                           const LoadOptions& options) {
    runtime::record_as_environment_says();
    const std::filesystem::path name = "a model from a stream";
    runtime::load_named_kernels(kernels_for(runtime::code_of(model), name), name, options);
}

torch::jit::Module load(const std::filesystem::path& model, const LoadOptions& options) {
    runtime::record_as_environment_says();
    const bool has_kernels = runtime::load_required_kernels(model, options, runtime::load_kernel);
    torch::jit::Module loaded =
        runtime::open_model_file(model, options.model, {.device = options.device});
    const auto report = runtime::apply_pending(loaded);
    if (report && options.explain) {
        for (const SiteReport& site : report->sites) {
            options.explain(site.site + ": " + site_status_name(site.status) + ", " + site.because);
        }
    }
    if (options.prepack && (has_kernels || report)) {
        prepack(loaded);
    }
    return loaded;
}

std::size_t prepack(const torch::jit::Module& model) {
    return runtime::prepack_weights(model);
}

}  // namespace twinkle
