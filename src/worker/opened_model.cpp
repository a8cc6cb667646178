#include "worker/opened_model.h"

#include "base/file.h"
#include "runtime/exported/opened_file.h"
#include "runtime/model/io_operators.h"
#include "runtime/trial/sandbox.h"
#include "twinkle/error.h"

namespace twinkle::worker {

namespace {

void try_in_child(const Request& request, const std::function<void()>& read) {
    runtime::leave_threads_to_children();
    auto limits = runtime::SandboxLimits::for_bytes(std::filesystem::file_size(request.model));
    limits.total = 2 * limits.silence;
    limits.confinement.readable = {request.model};
    limits.confinement.none = request.allow_io;
    const auto outcome = runtime::run_in_sandbox(
        limits,
        [&](const auto&) {
            try {
                read();
            } catch (const std::exception&) {
                return;  // it is read again here, and the error said
            }
        },
        [](std::string_view) {});
    if (!outcome.finished) {
        throw Error(ErrorCode::refused,
                    {.what = "the model cannot be loaded",
                     .where = base::display_path(request.model),
                     .why = outcome.why + " while code of it ran that belongs to loading "
                                          "(__setstate__), in a child process",
                     .hint = "the model is damaged or hostile: get it from somebody you trust"});
    }
}

}  // namespace

torch::jit::Module open_to_look(const Request& request, const Channel& channel) {
    channel.stage("load-model", base::display_path(request.model));
    return runtime::open_model_file(
        request.model, request.model_name,
        {.allow_io = request.allow_io,
         .map_weights = true,
         .try_first = [&](const std::function<void()>& read) { try_in_child(request, read); }});
}

torch::jit::Module open_to_use(const Request& request, const Channel& channel) {
    torch::jit::Module model = open_to_look(request, channel);
    if (!request.allow_io) {
        runtime::require_no_io(model, request.model);
    }
    return model;
}

}  // namespace twinkle::worker
