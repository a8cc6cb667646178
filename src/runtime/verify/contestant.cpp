#include "runtime/verify/contestant.h"

#include "runtime/verify/gradients.h"

#include <unordered_map>

namespace twinkle::runtime {

namespace {

Inputs copied_but(const ModelWeights& weights, const Inputs& inputs) {
    Inputs copy = deep_copy(inputs);
    for (std::size_t i = 0; i < copy.positional.size(); ++i) {
        const c10::IValue& value = inputs.positional[i];
        if (value.isTensor() && weights.has(value.toTensor())) {
            copy.positional[i] = value;
        }
    }
    return copy;
}

std::function<void()> forward_call(const torch::jit::Module& module, const std::string& method,
                                   const Inputs& inputs, const ModelWeights& weights) {
    return [method = module.get_method(method), inputs = copied_but(weights, inputs)] {
        const torch::NoGradGuard no_grad;
        method(inputs.positional, inputs.named);
    };
}

bool fits(const at::Tensor& one, const at::Tensor& other) {
    return one.scalar_type() == other.scalar_type() && one.device() == other.device() &&
           one.layout() == at::kStrided && other.layout() == at::kStrided &&
           one.sizes() == other.sizes() && one.strides() == other.strides();
}

// Makes parameters of `to` use those of `from` with the same name, where `may` allows it.
void lend(const torch::jit::Module& from, const torch::jit::Module& to,
          bool (*may)(const at::Tensor& one, const at::Tensor& other)) {
    std::unordered_map<std::string, at::Tensor> known;
    for (const auto& [name, parameter] : from.named_parameters()) {
        known.emplace(name, parameter);
    }
    for (const auto& [name, parameter] : to.named_parameters()) {
        at::Tensor tensor = parameter;
        if (const auto found = known.find(name);
            found != known.end() && may(found->second, tensor)) {
            tensor.set_data(found->second.detach());
        }
    }
}

}  // namespace

c10::IValue run_seeded(const torch::jit::Module& module, const std::string& method,
                       const Inputs& inputs) {
    at::manual_seed(0);
    return module.get_method(method)(inputs.positional, inputs.named);
}

std::function<void()> contestant(const torch::jit::Module& module, const Calls& calls,
                                 bool training, const ModelWeights& weights) {
    std::vector<std::function<void()>> works;
    for (const auto& [method, inputs] : calls) {
        works.push_back(training ? training_step(module, method, inputs)
                                 : forward_call(module, method, inputs, weights));
    }
    return [works] {
        for (const auto& work : works) {
            work();
        }
    };
}

std::vector<at::Tensor> weights_of(const torch::jit::Module& module, const Calls& calls,
                                   const ModelWeights& weights) {
    std::vector<at::Tensor> found;
    for (const at::Tensor& parameter : module.parameters()) {
        found.push_back(parameter);
    }
    for (const at::Tensor& buffer : module.buffers()) {  // what a kernel has prepared
        found.push_back(buffer);
    }
    for (const auto& [method, inputs] : calls) {
        for (const c10::IValue& value : inputs.positional) {
            if (value.isTensor() && weights.has(value.toTensor())) {
                found.push_back(value.toTensor());
            }
        }
    }
    return found;
}

void share_parameters(const torch::jit::Module& from, const torch::jit::Module& to) {
    lend(from, to, [](const at::Tensor& one, const at::Tensor& other) {
        return fits(one, other) && one.equal(other);
    });
}

void lend_parameters(const torch::jit::Module& from, const torch::jit::Module& to) {
    lend(from, to, fits);
}

}  // namespace twinkle::runtime
