#include "runtime/model/frozen_model.h"

#include "runtime/model/labels.h"

#include <torch/csrc/jit/api/module.h>

#include <string>
#include <vector>

namespace twinkle::runtime {

torch::jit::Module frozen_model(const torch::jit::Module& root) {
    std::vector<std::string> kept = label_attributes(*root.type());
    for (const torch::jit::Method& method : root.get_methods()) {
        const std::string& name = method.name();
        if (name != "forward" && !name.starts_with("__") && !name.starts_with("twinkle")) {
            kept.push_back(name);
        }
    }
    return torch::jit::freeze(root, kept);
}

}  // namespace twinkle::runtime
