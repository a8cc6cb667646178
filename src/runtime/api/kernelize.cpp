#include "twinkle/kernelize.h"

#include "runtime/exported/needed_kernels.h"
#include "runtime/exported/opened_file.h"
#include "runtime/kernels/declared_operators.h"
#include "runtime/model/no_kernel_loading.h"
#include "runtime/plan/run.h"
#include "runtime/registry/pending.h"
#include "runtime/trial/kernel_trial.h"
#include "twinkle/error.h"
#include "twinkle/load.h"

#include <algorithm>

namespace twinkle {

void runtime::declare_required(const std::filesystem::path& model, const std::string& name,
                               const Mapping& mapping) {
    if (is_export(model)) {
        for (const MappedKernel& kernel : kernels_of_export(model, name, mapping)) {
            declare_kernel(kernel);
        }
        return;
    }
    for (const RequiredKernel& kernel : required_kernels(model)) {
        const auto mapped =
            std::find_if(mapping.kernels.begin(), mapping.kernels.end(),
                         [&](const auto& one) { return one.build_id() == kernel.build_id; });
        if (mapped == mapping.kernels.end()) {
            throw Error(ErrorCode::refused,
                        {.what = "the model has a kernel already that the mapping has not: " +
                                 kernel.name + " (" + kernel.variant + ")",
                         .where = "",
                         .why = "no kernel is loaded for a machine that is not this one",
                         .hint = "kernelize the original model"});
        }
        declare_kernel(*mapped);
    }
}

namespace {

runtime::KernelProvider provider_for(const KernelizeOptions& options) {
    return !options.load_kernels         ? runtime::declare_kernel
           : options.kernels_in_children ? runtime::try_kernel
                                         : runtime::load_kernel;
}

}  // namespace

Report kernelize_with(torch::jit::Module& model, const Mapping& mapping,
                      const KernelizeOptions& options) {
    const auto pending = runtime::apply_pending(model);
    Report report = runtime::run({model, mapping, options, provider_for(options)});
    if (pending) {
        report.sites.insert(report.sites.end(), pending->sites.begin(), pending->sites.end());
        report.warnings.insert(report.warnings.end(), pending->warnings.begin(),
                               pending->warnings.end());
    }
    runtime::report_nothing_replaced(report, mapping);
    return report;
}

Kernelized kernelize(const std::filesystem::path& model, const Mapping& mapping,
                     const KernelizeOptions& options) {
    if (options.load_kernels) {
        runtime::load_required_kernels(model, {}, provider_for(options));
    } else {
        runtime::declare_required(model, "", mapping);
    }
    std::optional<runtime::NoKernelLoading> nothing_loaded;
    if (!options.load_kernels || options.kernels_in_children) {
        nothing_loaded.emplace();
    }
    Kernelized result{runtime::open_model_file(model, ""), {}};
    result.report = kernelize_with(result.model, mapping, options);
    return result;
}

}  // namespace twinkle
