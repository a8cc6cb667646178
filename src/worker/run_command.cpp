#include "base/file.h"
#include "base/text.h"
#include "runtime/kernels/loaded_kernels.h"
#include "runtime/model/inputs.h"
#include "runtime/model/io_operators.h"
#include "runtime/model/model_file.h"
#include "runtime/model/moved_model.h"
#include "runtime/model/outputs.h"
#include "runtime/verify/run_error.h"
#include "twinkle/twinkle.h"
#include "worker/commands.h"

#include <torch/version.h>

#include <chrono>

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

[[noreturn]] void no_such_device(const Request& request, const std::string& why) {
    throw Error(ErrorCode::refused,
                {.what = "the model cannot be run on " + base::printable(*request.device),
                 .where = base::display_path(request.model),
                 .why = why,
                 .hint = "leave out --device, or use a runtime and a machine that have it"});
}

// Before anything is loaded: whether there is such a device at all.
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

}  // namespace

Json run_command(const Request& request, const Channel& channel) {
    LoadOptions options;
    options.kernel_dirs = request.kernel_dirs;
    require_device(request);
    options.explain = [&](const std::string& attempt) { channel.trace(attempt); };
    const auto required = required_kernels(request.model);
    for (const RequiredKernel& kernel : required) {
        channel.stage("load-kernel", kernel.name);
    }
    runtime::load_named_kernels(required, request.model, options);
    channel.stage("load-model", base::display_path(request.model));
    torch::jit::Module model = runtime::open_model(request.model, {.allow_io = request.allow_io});
    if (!request.allow_io) {
        runtime::require_no_io(model, request.model);
    }
    runtime::Inputs inputs;
    if (request.inputs) {
        inputs = runtime::read_inputs(*request.inputs);
    }
    move_to_device(request, model, inputs);
    channel.stage("run", request.method);
    const auto start = std::chrono::steady_clock::now();
    const c10::IValue outputs = call(request, model, inputs);
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - start;
    if (request.output) {
        channel.stage("save", base::display_path(*request.output));
        base::write_file_atomically(*request.output, runtime::pickled_outputs(outputs));
    }
    Json result = {
        {"method", request.method}, {"time_ms", spent.count()}, {"outputs", Json::array()}};
    describe(outputs, result["outputs"]);
    return result;
}

}  // namespace twinkle::worker
