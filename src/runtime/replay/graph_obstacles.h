#pragma once
// The parts of a model that a captured run would leave out, or get wrong.

#include <torch/script.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

// An obstacle in its code; none: nothing in it prevents capture. Waiting for the device is detected
// only at capture.
std::optional<std::string> graph_obstacle(const torch::jit::Graph& forward);
// Reports weights on several devices: a captured run belongs to one.
std::optional<std::string> device_obstacle(const torch::jit::Module& model);

// How often each tensor of a model was written to: a difference between two of these is state that
// a run has changed. Tensors made in inference mode have no such count.
class StateVersions {
public:
    explicit StateVersions(const torch::jit::Module& model);
    // The path of the first tensor that was written to or replaced.
    std::optional<std::string> changed_since(const StateVersions& before) const;

private:
    struct State {
        std::string path;
        const void* tensor;
        std::uint32_t version;
    };
    std::vector<State> states_;
};

}  // namespace twinkle::runtime
