#include "runtime/selection/context.h"
#include "runtime/format.h"

#include "base/text.h"
#include "runtime/selection/modes.h"
#include "target/backend.h"
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

}  // namespace

std::string device_for(const torch::jit::Module& model, const std::optional<std::string>& device,
                       std::vector<std::string>& warnings) {
    if (device) {
        return named_device(*device);
    }
    std::string first;
    std::set<std::string> all;
    for (const at::Tensor& parameter : model.parameters()) {
        const auto name = c10::DeviceTypeName(parameter.device().type(), /*lower_case=*/true);
        first = first.empty() ? name : first;
        all.insert(name);
    }
    if (all.empty()) {
        throw Error(ErrorCode::malformed,
                    {.what = "the model has no parameter that tells its device",
                     .where = "",
                     .why = "",
                     .hint = "name the device (--device, or device in the options)"});
    }
    if (all.size() > 1) {
        warnings.push_back(
            fmt::format("the model's parameters are on several devices ({}); kernels are chosen "
                        "for {}",
                        fmt::join(all, ", "), first));
    }
    return first;
}

}  // namespace twinkle::runtime
