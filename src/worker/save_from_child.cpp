#include "worker/save_from_child.h"

#include "base/file.h"
#include "base/io_error.h"
#include "base/json.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "protocol/error_json.h"
#include "runtime/graph/sites.h"
#include "runtime/trial/child_error.h"

#include <torch/csrc/jit/serialization/export.h>

#include <fcntl.h>

#include <cerrno>
#include <optional>

namespace twinkle::worker {

using base::Json;

namespace {

void write_to(int descriptor, const torch::jit::Module& model, const std::filesystem::path& file) {
    int failure = 0;
    torch::jit::ExportModule(model, [&](const void* data, std::size_t size) {
        if (failure == 0) {
            failure = base::write_all(descriptor, {static_cast<const char*>(data), size});
        }
        return size;
    });
    if (failure != 0) {
        base::throw_write_error(file, failure);
    }
}

}  // namespace

std::size_t save_from_child(const std::filesystem::path& file, runtime::SandboxLimits limits,
                            const std::function<torch::jit::Module()>& make,
                            const std::function<Error(const std::string& why)>& failed) {
    base::AtomicFile whole(file);
    const base::UniqueFd open(::open(whole.temporary().c_str(), O_WRONLY | O_CLOEXEC));
    if (!open) {
        base::throw_write_error(file, errno);
    }
    limits.descriptors = {open.get()};
    std::optional<Error> error;
    std::optional<std::size_t> modules;
    runtime::leave_threads_to_children();
    const auto outcome = runtime::run_in_sandbox(
        limits,
        [&](const child::Send& send) {
            try {
                const torch::jit::Module model = make();
                write_to(open.get(), model, file);
                send(base::json_line({{"modules", runtime::instances_of(model).size()}}));
            } catch (const Error& thrown) {
                send(base::json_line({{"error", protocol::to_json(thrown)}}));
            }
        },
        [&](std::string_view line) {  // untrusted text
            const Json said = base::parse_json(line, "model of a child");
            if (const auto found = said.find("error"); found != said.end()) {
                error = runtime::error_of_child(*found);
            } else {
                modules = said.at("modules").get<std::size_t>();
            }
        });
    if (error) {
        throw *error;
    }
    if (!outcome.finished || !modules) {
        throw failed(outcome.finished ? "it ended without a result" : outcome.why);
    }
    whole.commit();
    return *modules;
}

}  // namespace twinkle::worker
