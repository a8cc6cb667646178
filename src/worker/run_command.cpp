#include "base/file.h"
#include "base/io_error.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "protocol/error_json.h"
#include "runtime/convert/moved_model.h"
#include "runtime/exported/needed_kernels.h"
#include "runtime/exported/opened_file.h"
#include "runtime/kernels/gpu_code.h"
#include "runtime/kernels/kernel_finder.h"
#include "runtime/kernels/loaded_kernels.h"
#include "runtime/model/inputs.h"
#include "runtime/model/io_operators.h"
#include "runtime/model/outputs.h"
#include "runtime/trial/child_error.h"
#include "runtime/trial/sandbox.h"
#include "runtime/verify/run_error.h"
#include "twinkle/twinkle.h"
#include "worker/commands.h"
#include "worker/unconfined.h"
#include "worker/written.h"

#include <torch/version.h>

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <optional>

namespace twinkle::worker {

namespace {

using base::Json;

void describe(const c10::IValue& value, Json& into) {
    if (value.isTensor()) {
        const at::Tensor& tensor = value.toTensor();
        into.push_back({{"dtype", runtime::dtype_name(tensor.scalar_type())},
                        {"shape", tensor.sizes().vec()}});
    } else if (value.isTuple()) {
        for (const c10::IValue& element : value.toTupleRef().elements()) {
            describe(element, into);
        }
    } else if (value.isList()) {
        for (const c10::IValue& element : value.toListRef().vec()) {
            describe(element, into);
        }
    } else {
        into.push_back({{"type", value.tagKind()}});
    }
}

std::string method_names(const torch::jit::Module& model) {
    std::vector<std::string> names;
    for (const torch::jit::Method& method : model.get_methods()) {
        names.push_back(method.name());
    }
    return base::join(names, ", ");
}

c10::IValue call(const Request& request, torch::jit::Module& model, runtime::Inputs& inputs) {
    const auto method = model.find_method(request.method);
    if (!method) {
        throw Error(ErrorCode::not_found, {.what = "the model has no method " + request.method,
                                           .where = base::display_path(request.model),
                                           .why = "",
                                           .hint = "it has " + method_names(model)});
    }
    std::unordered_map<std::string, c10::IValue> named(inputs.named.begin(), inputs.named.end());
    try {
        const torch::NoGradGuard no_grad;
        return (*method)(inputs.positional, named);
    } catch (const std::exception& error) {
        throw Error(ErrorCode::malformed,
                    {.what = "the model cannot be run on these inputs",
                     .where = base::display_path(request.model),
                     .why = runtime::run_error(error.what()),
                     .hint = "give inputs as the method takes them (--inputs)"});
    }
}

// Takes only what describe() and the clock can have produced.
Json checked_result(const Json& said) {
    Json result = {{"time_ms", said.at("time_ms").get<double>()}, {"outputs", Json::array()}};
    for (const Json& output : said.at("outputs")) {
        result["outputs"].push_back(
            output.contains("type")
                ? Json{{"type", base::printable(output["type"].get<std::string>())}}
                : Json{{"dtype", base::printable(output.at("dtype").get<std::string>())},
                       {"shape", output.at("shape").get<std::vector<std::int64_t>>()}});
    }
    return result;
}

[[noreturn]] void no_such_device(const Request& request, const std::string& why) {
    throw Error(ErrorCode::refused,
                {.what = "the model cannot be run on " + base::printable(*request.device),
                 .where = base::display_path(request.model),
                 .why = why,
                 .hint = "leave out --device, or use a runtime and a machine that have it"});
}

// Checks that there is such a device at all, before anything is loaded.
void require_device(const Request& request) {
    if (request.device && *request.device != "cpu" && !at::globalContext().hasCUDA()) {
        no_such_device(request, std::string("LibTorch ") + TORCH_VERSION +
                                    " sees no such device here, or was built without it");
    }
}

void move_to_device(const Request& request, torch::jit::Module& model, runtime::Inputs& inputs) {
    if (!request.device) {
        return;
    }
    try {
        const torch::Device device(*request.device);
        runtime::move_to(model, device);
        runtime::move_to(inputs, device);
    } catch (const c10::Error& error) {
        no_such_device(request, runtime::run_error(error.what_without_backtrace()));
    }
}

// One run in a confined child process: the model, its kernels and its inputs are foreign code and
// data.
class ConfinedRun {
public:
    ConfinedRun(const Request& request, const Channel& channel)
        : request_(request), channel_(channel) {}

    Json run();

private:
    void find_kernels();
    runtime::SandboxLimits limits() const;
    void in_child(const child::Send& send);
    Json run_model(const child::Send& send);
    void write_outputs(const c10::IValue& outputs) const;
    void take(std::string_view line);
    [[noreturn]] void refuse(const std::string& why) const;

    const Request& request_;
    const Channel& channel_;
    std::vector<std::pair<MappedKernel, runtime::VerifiedFiles>> kernels_;
    std::optional<base::AtomicFile> file_;
    base::UniqueFd output_;
    runtime::SandboxLimits limits_;
    std::string stage_ = "load-kernel";
    std::string what_;
    std::optional<Error> error_;
    Json result_;
};

void tell(const child::Send& send, const Json& json) {
    send(base::json_line(json));
}

// Checks the files here; the child gets the checked ones.
void ConfinedRun::find_kernels() {
    const runtime::KernelFinder finder(
        request_.kernel_dirs, [&](const std::string& attempt) { channel_.trace(attempt); });
    const auto add = [&](MappedKernel kernel) {
        channel_.stage("load-kernel", kernel.name);
        runtime::require_gpu_code(kernel);  // the child may not see which GPUs there are
        auto files = runtime::read_verified(kernel);
        kernels_.emplace_back(std::move(kernel), std::move(files));
    };
    if (runtime::is_export(request_.model)) {
        for (MappedKernel& kernel :
             runtime::kernels_of_export(request_.model, request_.model_name, finder)) {
            add(std::move(kernel));
        }
        return;
    }
    for (const RequiredKernel& required : required_kernels(request_.model)) {
        add(finder.find(required, request_.model));
    }
}

runtime::SandboxLimits ConfinedRun::limits() const {
    auto limits = runtime::SandboxLimits::for_loading();
    limits.memory = 0;
    limits.keeps_output = true;
    limits.confinement.readable = {request_.model};
    if (request_.inputs) {
        limits.confinement.readable.emplace_back(*request_.inputs);
    }
    limits.confinement.none = request_.allow_io;
    if (output_) {
        limits.descriptors = {output_.get()};
    }
    return limits;
}

Json ConfinedRun::run_model(const child::Send& send) {
    const auto stage = [&](const std::string& name, const std::string& what) {
        tell(send, {{"stage", name}, {"what", what}});
    };
    require_device(request_);
    for (auto& [kernel, files] : kernels_) {
        stage("load-kernel", kernel.name);
        runtime::load_verified(kernel, std::move(files));
    }
    stage("load-model", base::display_path(request_.model));
    torch::jit::Module model = runtime::open_model_file(
        request_.model, request_.model_name, {.allow_io = request_.allow_io, .map_weights = true});
    if (!request_.allow_io) {
        runtime::require_no_io(model, request_.model);
    }
    runtime::Inputs inputs;
    if (request_.inputs) {
        inputs = runtime::read_inputs(*request_.inputs);
    }
    move_to_device(request_, model, inputs);
    stage("run", request_.method);
    const auto start = std::chrono::steady_clock::now();
    const c10::IValue outputs = call(request_, model, inputs);
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - start;
    if (output_) {
        stage("save", base::display_path(*request_.output));
        write_outputs(outputs);
    }
    Json result = {{"time_ms", spent.count()}, {"outputs", Json::array()}};
    describe(outputs, result["outputs"]);
    return result;
}

void ConfinedRun::write_outputs(const c10::IValue& outputs) const {
    if (const int error = base::write_all(output_.get(), runtime::pickled_outputs(outputs));
        error != 0) {
        base::throw_write_error(*request_.output, error);
    }
}

void ConfinedRun::in_child(const child::Send& send) {
    try {
        tell(send, {{"result", run_model(send)}});
    } catch (const Error& error) {
        tell(send, {{"error", protocol::to_json(error)}});
    }
}

// Treats the child's words as untrusted text.
void ConfinedRun::take(std::string_view line) {
    const Json said = base::parse_json(line, "run");
    if (const auto stage = said.find("stage"); stage != said.end()) {
        stage_ = base::printable(stage->get<std::string>());
        what_ = base::printable(said.at("what").get<std::string>());
        channel_.stage(stage_, what_);
        if (stage_ != "load-kernel") {  // how long a run takes is the user's business
            limits_.silence = limits_.total = std::chrono::hours(24 * 365);
        }
    } else if (const auto error = said.find("error"); error != said.end()) {
        error_ = runtime::error_of_child(*error);
    } else {
        result_ = checked_result(said.at("result"));
    }
}

void ConfinedRun::refuse(const std::string& why) const {
    if (stage_ == "load-kernel") {
        throw Error(ErrorCode::refused,
                    {.what = "the library of the kernel " + what_ + " cannot be loaded",
                     .where = base::display_path(request_.model),
                     .why = why + " while it was loaded, in a child process",
                     .hint = "the build is broken or not for this machine; `twinkle versions` "
                             "shows which fit"});
    }
    throw Error(ErrorCode::failed,
                {.what = "the run of the model did not end",
                 .where = base::display_path(request_.model),
                 .why = why + ", in a child process (" + stage_ + ")",
                 .hint = "an operator of a kernel misbehaves: `twinkle kernelize --inputs … "
                         "--verify` finds out which"});
}

Json ConfinedRun::run() {
    find_kernels();
    if (request_.output) {
        file_.emplace(*request_.output);
        output_ = base::UniqueFd(::open(file_->temporary().c_str(), O_WRONLY | O_CLOEXEC));
        if (!output_) {
            base::throw_write_error(*request_.output, errno);
        }
    }
    runtime::leave_threads_to_children();
    limits_ = limits();
    const auto outcome = runtime::run_in_sandbox(
        limits_, [&](const child::Send& send) { in_child(send); },
        [&](std::string_view line) { take(line); });
    if (error_) {
        throw *error_;
    }
    if (!outcome.finished || result_.is_null()) {
        refuse(outcome.finished ? "it ended without a result" : outcome.why);
    }
    result_["method"] = request_.method;
    if (file_) {
        file_->commit();
        result_["written"] = written(*request_.output);
    }
    warn_of_unconfined(channel_);
    return std::move(result_);
}

}  // namespace

Json run_command(const Request& request, const Channel& channel) {
    return ConfinedRun(request, channel).run();
}

}  // namespace twinkle::worker
