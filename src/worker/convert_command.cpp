#include "base/file.h"
#include "base/io_error.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "protocol/error_json.h"
#include "runtime/exported/needed_kernels.h"
#include "runtime/exported/objects.h"
#include "runtime/exported/opened_file.h"
#include "runtime/graph/sites.h"
#include "runtime/kernels/loaded_kernels.h"
#include "runtime/model/debug_info.h"
#include "runtime/trial/child_error.h"
#include "runtime/trial/kernel_trial.h"
#include "runtime/trial/sandbox.h"
#include "twinkle/error.h"
#include "worker/commands.h"
#include "worker/unconfined.h"
#include "worker/written.h"

#include <torch/csrc/jit/serialization/export.h>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <optional>

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
// of it in a confined child, which gets an open file.
class ConfinedConversion {
public:
    ConfinedConversion(const Request& request, const Channel& channel,
                       const std::vector<MappedKernel>& kernels)
        : request_(request), channel_(channel), file_(*request.output) {
        for (const MappedKernel& kernel : kernels) {
            channel.stage("load-kernel", kernel.name);
            kernels_.emplace_back(kernel, runtime::read_verified(kernel));
        }
    }

    Json run() {
        output_ = base::UniqueFd(::open(file_.temporary().c_str(), O_WRONLY | O_CLOEXEC));
        if (!output_) {
            base::throw_write_error(*request_.output, errno);
        }
        runtime::leave_threads_to_children();
        auto limits = runtime::SandboxLimits::for_bytes(std::filesystem::file_size(request_.model));
        limits.total = 2 * limits.silence;
        limits.confinement.readable = {request_.model};
        limits.descriptors = {output_.get()};
        const auto outcome = runtime::run_in_sandbox(
            limits, [&](const child::Send& send) { in_child(send); },
            [&](std::string_view line) { take(line); });
        if (error_) {
            throw *error_;
        }
        if (!outcome.finished || !modules_) {
            throw Error(ErrorCode::refused,
                        {.what = "the model cannot be converted",
                         .where = base::display_path(request_.model),
                         .why = (outcome.finished ? "it ended without a result" : outcome.why) +
                                std::string(" while code of a kernel made objects of its classes, "
                                            "in a child process"),
                         .hint = "the build is broken or the archive damaged; `twinkle versions` "
                                 "shows which builds fit"});
        }
        file_.commit();
        warn_of_unconfined(channel_);
        return {{"written", written(*request_.output)}, {"modules", *modules_}};
    }

private:
    void in_child(const child::Send& send) {
        try {
            for (auto& [kernel, files] : kernels_) {
                runtime::load_verified(kernel, std::move(files));
            }
            const torch::jit::Module model = converted(request_);
            int failure = 0;
            torch::jit::ExportModule(model, [&](const void* data, std::size_t size) {
                if (failure == 0) {
                    failure =
                        base::write_all(output_.get(), {static_cast<const char*>(data), size});
                }
                return size;
            });
            if (failure != 0) {
                base::throw_write_error(*request_.output, failure);
            }
            send(base::json_line({{"modules", runtime::instances_of(model).size()}}));
        } catch (const Error& error) {
            send(base::json_line({{"error", protocol::to_json(error)}}));
        }
    }

    // Treats the child's words as untrusted text.
    void take(std::string_view line) {
        const Json said = base::parse_json(line, "convert");
        if (const auto error = said.find("error"); error != said.end()) {
            error_ = runtime::error_of_child(*error);
        } else {
            modules_ = said.at("modules").get<std::size_t>();
        }
    }

    const Request& request_;
    const Channel& channel_;
    std::vector<std::pair<MappedKernel, runtime::VerifiedFiles>> kernels_;
    base::AtomicFile file_;
    base::UniqueFd output_;
    std::optional<Error> error_;
    std::optional<std::size_t> modules_;
};

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
        return ConfinedConversion(request, channel, kernels).run();
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
