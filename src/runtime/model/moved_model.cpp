#include "runtime/model/moved_model.h"

#include "runtime/model/graph_walk.h"
#include "runtime/rewrite/past_runs.h"

namespace twinkle::runtime {

namespace jit = torch::jit;

jit::Module moved_to(const jit::Module& model, const torch::Device& device) {
    jit::Module moved = model.deepcopy(device);
    for (jit::Node* node : tensor_constants(moved)) {
        node->t_(c10::attr::value, node->t(c10::attr::value).to(device));
    }
    forget_runs(moved);
    return moved;
}

}  // namespace twinkle::runtime
