#include "base/file.h"
#include "base/text.h"
#include "runtime/model/inputs.h"
#include "runtime/model/outputs.h"
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

// The stack of the model's source comes first in LibTorch's text, the message last, or that of C++
// after it.
std::string message_of(const std::string& thrown) {
    const std::string text = thrown.substr(0, thrown.find("\nException raised"));
    std::string message;
    for (const std::string& line : base::split(text, '\n')) {
        if (line.find("Error: ") != std::string::npos) {
            message = line;
        }
    }
    return base::printable((message.empty() ? text : message).substr(0, 300));
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
                     .why = message_of(error.what()),
                     .hint = "give inputs as the method takes them (--inputs)"});
    }
}

// The one asked for, if this LibTorch has it.
torch::Device device_of(const Request& request) {
    const std::string name = request.device.value_or("cpu");
    if (name != "cpu" && !at::globalContext().hasCUDA()) {
        throw Error(ErrorCode::refused,
                    {.what = "there is no device " + base::printable(name) + " here",
                     .where = "",
                     .why = std::string("LibTorch ") + TORCH_VERSION +
                            (at::hasCUDA() ? "" : " sees no such device or was built without it"),
                     .hint = "leave out --device, or use a runtime and a machine that have it"});
    }
    return torch::Device(name);
}

}  // namespace

Json run_command(const Request& request, const Channel& channel) {
    LoadOptions options;
    options.kernel_dirs = request.kernel_dirs;
    const torch::Device device = device_of(request);
    for (const RequiredKernel& kernel : required_kernels(request.model)) {
        channel.stage("load-kernel", kernel.name);
    }
    load_required_kernels(request.model, options);
    channel.stage("load-model", base::display_path(request.model));
    torch::jit::Module model = load(request.model, options);
    runtime::Inputs inputs;
    if (request.inputs) {
        inputs = runtime::read_inputs(*request.inputs);
    }
    if (request.device) {
        model.to(device);
        runtime::move_to(inputs, device);
    }
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
