#include "runtime/convert/frozen_model.h"

#include "runtime/convert/device_constants.h"
#include "runtime/model/labels.h"

#include <torch/csrc/jit/api/module.h>

#include <string>
#include <vector>

namespace twinkle::runtime {

torch::jit::Module frozen_model(const torch::jit::Module& root, const torch::Device& device) {
    std::vector<std::string> kept = label_attributes(*root.type());
    for (const torch::jit::Method& method : root.get_methods()) {
        const std::string& name = method.name();
        if (name != "forward" && !name.starts_with("__") && !name.starts_with("twinkle")) {
            kept.push_back(name);
        }
    }
    torch::jit::Module frozen = torch::jit::freeze(root, kept);
    release_devices(frozen, device);
    return frozen;
}

}  // namespace twinkle::runtime
