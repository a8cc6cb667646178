#include "base/file.h"
#include "runtime/exported/needed_kernels.h"
#include "runtime/exported/opened_file.h"
#include "runtime/graph/sites.h"
#include "runtime/model/debug_info.h"
#include "runtime/trial/kernel_trial.h"
#include "twinkle/error.h"
#include "worker/commands.h"
#include "worker/written.h"

namespace twinkle::worker {

base::Json convert_command(const Request& request, const Channel& channel) {
    if (!runtime::is_export(request.model)) {
        throw Error(ErrorCode::malformed,
                    {.what = "there is nothing to convert",
                     .where = base::display_path(request.model),
                     .why = "it is no archive of torch.export",
                     .hint = "every command takes TorchScript models as they are"});
    }
    const runtime::KernelFinder finder(request.kernel_dirs,
                                       [&](const std::string& attempt) { channel.trace(attempt); });
    for (const MappedKernel& kernel :
         runtime::kernels_of_export(request.model, request.model_name, finder)) {
        channel.stage("load-kernel", kernel.name);
        runtime::try_kernel(kernel);
    }
    channel.stage("load-model", base::display_path(request.model));
    const torch::jit::Module model =
        runtime::open_model_file(request.model, request.model_name, {.map_weights = true});
    channel.stage("save", base::display_path(*request.output));
    if (request.strip_debug) {
        runtime::strip_debug_info(model);
    }
    runtime::save_model(model, *request.output);
    return {{"written", written(*request.output)},
            {"modules", runtime::instances_of(model).size()}};
}

}  // namespace twinkle::worker
