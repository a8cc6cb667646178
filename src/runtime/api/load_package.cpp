#include "twinkle/package.h"

#include "archive/compiled_package.h"
#include "base/file.h"
#include "base/text.h"
#include "runtime/exported/needed_kernels.h"
#include "runtime/kernels/declared_operators.h"
#include "runtime/kernels/loaded_kernels.h"
#include "runtime/kernels/own_target.h"
#include "target/compiled_code.h"
#include "twinkle/error.h"

#include <torch/version.h>

#include <algorithm>

namespace twinkle {

namespace {

using archive::CompiledModel;

// The model that is meant; none is named: all of them.
std::vector<CompiledModel> chosen_models(const std::filesystem::path& package,
                                         const std::string& name) {
    auto models = archive::read_package(package).models;
    if (name.empty()) {
        return models;
    }
    std::erase_if(models, [&](const CompiledModel& model) { return model.name != name; });
    if (models.empty()) {
        throw Error(ErrorCode::not_found,
                    {.what = "the package has no model " + base::printable(name),
                     .where = base::display_path(package),
                     .why = "",
                     .hint = "`twinkle inspect` lists those that it has"});
    }
    return models;
}

void require_operators(const std::filesystem::path& package, const CompiledModel& model) {
    for (const auto& [name, calls] : model.operators) {
        if (!runtime::is_registered(name)) {
            throw Error(ErrorCode::not_found,
                        {.what = "the package needs the operator " + base::printable(name),
                         .where = base::display_path(package),
                         .why = "LibTorch does not have it, and no kernel that is known here",
                         .hint = "name the folder of its kernel in TWINKLE_KERNELS"});
        }
    }
}

void load_kernels(const std::filesystem::path& package, const std::vector<CompiledModel>& models,
                  const LoadOptions& options) {
    const runtime::KernelFinder finder(options.kernel_dirs, options.explain);
    for (const CompiledModel& model : models) {
        for (const MappedKernel& kernel : runtime::kernels_with_operators(
                 package, {model.operators, {}}, model.made_for.device, finder)) {
            runtime::load_kernel(kernel);
        }
        require_operators(package, model);
    }
}

// Code of another machine ends the process.
void require_this_machine(const std::filesystem::path& package, const CompiledModel& model) {
    const auto reasons = target::reasons_against(model.made_for, runtime::own_target(),
                                                 target::this_machine().cpu().features);
    if (!reasons.empty()) {
        throw Error(ErrorCode::refused, {.what = "the package does not run on this machine",
                                         .where = base::display_path(package),
                                         .why = base::join(reasons, "; "),
                                         .hint = "compile the model on a machine like this one"});
    }
}

// LibTorch's loader takes the number of threads since 2.7 and the device's index since 2.8.
std::unique_ptr<torch::inductor::AOTIModelPackageLoader> loader_of(const std::string& package,
                                                                   const std::string& model,
                                                                   c10::DeviceIndex device) {
    using Loader = torch::inductor::AOTIModelPackageLoader;
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 8
    return std::make_unique<Loader>(package, model, /*run_single_threaded=*/false,
                                    /*num_runners=*/1, device);
#else
    if (device > 0) {
        throw Error(ErrorCode::refused,
                    {.what = "the package cannot be loaded on that device",
                     .where = base::display_path(package),
                     .why = "this LibTorch loads packages on the current GPU only (2.8 and later "
                            "on any)",
                     .hint = "make it the current one, and leave out its index"});
    }
    return std::make_unique<Loader>(package, model);
#endif
}

std::string first_line(const std::string& text) {
    return base::printable(text.substr(0, std::min<std::size_t>(text.find('\n'), 300)));
}

}  // namespace

void load_package_kernels(const std::filesystem::path& package, const LoadOptions& options) {
    load_kernels(package, chosen_models(package, options.model), options);
}

std::unique_ptr<torch::inductor::AOTIModelPackageLoader> load_package(
    const std::filesystem::path& package, const LoadOptions& options) {
    const auto models = chosen_models(package, options.model);
    if (models.size() > 1) {
        throw Error(ErrorCode::not_found, {.what = "the package holds several models",
                                           .where = base::display_path(package),
                                           .why = "",
                                           .hint = "name one in LoadOptions::model; `twinkle "
                                                   "inspect` lists them"});
    }
    require_this_machine(package, models.front());
    load_kernels(package, models, options);
    try {
        return loader_of(package.string(), models.front().name, options.device.index());
    } catch (const Error&) {
        throw;
    } catch (const std::exception& error) {
        throw Error(ErrorCode::refused,
                    {.what = "the package cannot be loaded",
                     .where = base::display_path(package),
                     .why = "LibTorch says: " + first_line(error.what()),
                     .hint = "compile the model with the LibTorch of this program"});
    }
}

}  // namespace twinkle
