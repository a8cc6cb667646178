#pragma once
// What of a model a captured run would leave out, or do wrong.

#include <torch/script.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

// As its code has it; none: nothing in there is against it. What waits for the device is found out
// when it is captured.
std::optional<std::string> graph_obstacle(const torch::jit::Graph& forward);
// Weights on several devices: a captured run belongs to one.
std::optional<std::string> device_obstacle(const torch::jit::Module& model);

// How often the tensors of a model were written to: what changes between two of these is state that
// a run has changed. Tensors made in inference mode do not know.
class StateVersions {
public:
    explicit StateVersions(const torch::jit::Module& model);
    // The first that was written to or replaced, by its path.
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
