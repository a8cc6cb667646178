#include "runtime/selection/context.h"
#include "runtime/graph/format.h"

#include "base/text.h"
#include "runtime/graph/graph_walk.h"
#include "runtime/selection/modes.h"
#include "target/backend.h"
#include "target/machine.h"
#include "twinkle/error.h"

#include <set>

namespace twinkle::runtime {

std::string mode_for(const torch::jit::Module& model, const std::optional<std::string>& mode) {
    if (mode) {
        return normalized_mode(*mode);
    }
    for (const torch::jit::Module& module : model.modules()) {
        if (module.hasattr("training") && module.is_training()) {
            return "training";
        }
    }
    return "inference";
}

namespace {

std::string named_device(const std::string& text) {
    const std::string kind = text.substr(0, text.find(':'));
    const auto device = target::parse_device(kind);
    if (!device) {
        throw Error(ErrorCode::malformed,
                    {.what = "there is no device \"" + base::printable(text) + "\"",
                     .where = "",
                     .why = "devices: " + target::device_names(),
                     .hint = ""});
    }
    return *device;
}

// The parameters or, in a frozen model, the constants they became. Numbers may be on any device.
std::vector<at::Tensor> tensors_of(const torch::jit::Module& model) {
    std::vector<at::Tensor> tensors;
    for (const at::Tensor& parameter : model.parameters()) {
        tensors.push_back(parameter);
    }
    if (!tensors.empty()) {
        return tensors;
    }
    for (const at::Tensor& buffer : model.buffers()) {
        tensors.push_back(buffer);
    }
    for (const torch::jit::Node* constant : tensor_constants(model)) {
        if (constant->t(c10::attr::value).dim() > 0) {
            tensors.push_back(constant->t(c10::attr::value));
        }
    }
    return tensors;
}

}  // namespace

std::string device_for(const torch::jit::Module& model, const std::optional<std::string>& device,
                       std::vector<std::string>& warnings) {
    if (device) {
        return named_device(*device);
    }
    std::string first;
    std::set<std::string> all;
    for (const at::Tensor& tensor : tensors_of(model)) {
        const auto name = c10::DeviceTypeName(tensor.device().type(), /*lower_case=*/true);
        first = first.empty() ? name : first;
        all.insert(name);
    }
    if (all.empty()) {
        throw Error(ErrorCode::malformed,
                    {.what = "the model has no tensor that tells its device",
                     .where = "",
                     .why = "",
                     .hint = "name it: --device cpu, or device in the options"});
    }
    if (all.size() > 1) {
        warnings.push_back(fmt::format(
            "the model's tensors are on several devices ({}); kernels are chosen for {}",
            fmt::join(all, ", "), first));
    }
    return first;
}

std::optional<int> named_capability(const std::optional<std::string>& device) {
    const target::Machine& machine = target::this_machine();
    if (!device || !device->starts_with("cuda:") || !machine.may_have_cuda()) {
        return std::nullopt;
    }
    const std::string number = device->substr(5);
    const bool digits = !number.empty() && number.size() < 4 &&
                        number.find_first_not_of("0123456789") == std::string::npos;
    const auto driver = machine.cuda_driver();
    const std::size_t index = digits ? std::stoul(number) : 0;
    if (!digits || !driver || index >= driver->gpus.size()) {
        return std::nullopt;
    }
    const auto version = target::parse_version(driver->gpus[index].arch);
    return version ? std::optional(version->major * 10 + version->minor) : std::nullopt;
}

}  // namespace twinkle::runtime
