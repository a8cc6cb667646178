#include "runtime/convert/moved_model.h"

#include "runtime/graph/graph_walk.h"
#include "runtime/graph/past_runs.h"

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

void move_constants(jit::Module& model, const torch::Device& device) {
    for (jit::Node* node : tensor_constants(model)) {
        node->t_(c10::attr::value, node->t(c10::attr::value).to(device));
    }
    discard_past_runs(model);
}

}  // namespace

jit::Module moved_to(const jit::Module& model, const torch::Device& device) {
    jit::Module moved = model.deepcopy(device);
    move_constants(moved, device);
    return moved;
}

void move_to(jit::Module& model, const torch::Device& device) {
    model.to(device);
    move_constants(model, device);
}

}  // namespace twinkle::runtime
