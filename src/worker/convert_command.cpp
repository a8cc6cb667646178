#include "base/file.h"
#include "runtime/exported/needed_kernels.h"
#include "runtime/exported/objects.h"
#include "runtime/exported/opened_file.h"
#include "runtime/graph/sites.h"
#include "runtime/kernels/loaded_kernels.h"
#include "runtime/model/debug_info.h"
#include "runtime/trial/kernel_trial.h"
#include "runtime/trial/sandbox.h"
#include "twinkle/error.h"
#include "worker/commands.h"
#include "worker/save_from_child.h"
#include "worker/unconfined.h"
#include "worker/written.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace twinkle::worker {

namespace {

using base::Json;

torch::jit::Module converted(const Request& request) {
    const torch::jit::Module model =
        runtime::open_model_file(request.model, request.model_name, {.map_weights = true});
    if (request.strip_debug) {
        runtime::strip_debug_info(model);
    }
    return model;
}

// An object of a kernel's class is made, and saved again, by the code of the kernel's library: all
// of it in a confined child.
Json convert_confined(const Request& request, const Channel& channel,
                      const std::vector<MappedKernel>& kernels) {
    std::vector<std::pair<MappedKernel, runtime::VerifiedFiles>> read;
    for (const MappedKernel& kernel : kernels) {
        channel.stage("load-kernel", kernel.name);
        read.emplace_back(kernel, runtime::read_verified(kernel));
    }
    auto limits = runtime::SandboxLimits::for_bytes(std::filesystem::file_size(request.model));
    limits.total = 2 * limits.silence;
    limits.confinement.readable = {request.model};
    const std::size_t modules = save_from_child(
        *request.output, std::move(limits),
        [&] {
            for (auto& [kernel, files] : read) {
                runtime::load_verified(kernel, std::move(files));
            }
            return converted(request);
        },
        [&](const std::string& why) {
            return Error(ErrorCode::refused,
                         {.what = "the model cannot be converted",
                          .where = base::display_path(request.model),
                          .why = why + " while code of a kernel made objects of its classes, in a "
                                       "child process",
                          .hint = "the build is broken or the archive damaged; `twinkle versions` "
                                  "shows which builds fit"});
        });
    warn_of_unconfined(channel);
    return {{"written", written(*request.output)}, {"modules", modules}};
}

bool needs_foreign_objects(const Request& request) {
    const auto classes = runtime::needs_of_export(request.model, request.model_name).classes;
    return std::any_of(classes.begin(), classes.end(),
                       [](const auto& one) { return !runtime::exported::has_class(one.first); });
}

}  // namespace

Json convert_command(const Request& request, const Channel& channel) {
    if (!runtime::is_export(request.model)) {
        throw Error(ErrorCode::malformed,
                    {.what = "there is nothing to convert",
                     .where = base::display_path(request.model),
                     .why = "it is no archive of torch.export",
                     .hint = "every command takes TorchScript models as they are"});
    }
    const runtime::KernelFinder finder(request.kernel_dirs,
                                       [&](const std::string& attempt) { channel.trace(attempt); });
    const auto kernels = runtime::kernels_of_export(request.model, request.model_name, finder);
    if (!kernels.empty() && needs_foreign_objects(request)) {
        return convert_confined(request, channel, kernels);
    }
    for (const MappedKernel& kernel : kernels) {
        channel.stage("load-kernel", kernel.name);
        runtime::try_kernel(kernel);
    }
    channel.stage("load-model", base::display_path(request.model));
    const torch::jit::Module model = converted(request);
    channel.stage("save", base::display_path(*request.output));
    runtime::save_model(model, *request.output);
    return {{"written", written(*request.output)},
            {"modules", runtime::instances_of(model).size()}};
}

}  // namespace twinkle::worker
