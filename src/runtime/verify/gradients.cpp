#include "runtime/verify/gradients.h"

#include "runtime/model/nested_values.h"

#include <torch/csrc/autograd/autograd.h>

namespace twinkle::runtime {

namespace {

// 0.625, -0.375, …: eight values that repeat with a period that no dimension has.
at::Tensor pattern(const at::Tensor& like) {
    const at::Tensor step = at::arange(like.numel(), at::kLong) * 7919 % 1009 % 8;
    return ((step.to(at::kDouble) - 3.5) / 4).reshape(like.sizes()).to(like.options());
}

bool is_zero(const at::Tensor& gradient) {
    return !gradient.defined() || gradient.count_nonzero().item<std::int64_t>() == 0;
}

// The tensors whose gradients are computed: copies of the inputs, and the parameters themselves.
struct Leaves {
    std::vector<at::Tensor> tensors;
    std::vector<std::string> names;
};

Leaves leaves_of(const torch::jit::Module& module, const Inputs& inputs) {
    Leaves leaves;
    mapped(inputs, [&](const at::Tensor& tensor) {
        if (tensor.is_floating_point()) {
            leaves.tensors.push_back(tensor.detach().clone().set_requires_grad(true));
            leaves.names.push_back("input " + std::to_string(leaves.tensors.size()));
        }
        return tensor;
    });
    for (const auto& [name, parameter] : module.named_parameters()) {
        if (parameter.is_floating_point()) {
            leaves.tensors.push_back(parameter.set_requires_grad(true));
            leaves.names.push_back("parameter " + name);
        }
    }
    return leaves;
}

// The outputs that a gradient may flow into.
std::vector<at::Tensor> forward(const torch::jit::Module& module, const std::string& method,
                                const Inputs& inputs, const Leaves& leaves) {
    std::size_t next = 0;
    const Inputs tracked = mapped(inputs, [&](const at::Tensor& tensor) {
        // Copies: the model may write to them.
        return (tensor.is_floating_point() ? leaves.tensors[next++] : tensor).clone();
    });
    at::manual_seed(0);  // the same dropout in all runs
    auto outputs = tensors_of(module.get_method(method)(tracked.positional, tracked.named));
    std::erase_if(outputs, [](const at::Tensor& output) {
        return !output.is_floating_point() || !output.requires_grad();
    });
    return outputs;
}

std::vector<at::Tensor> patterns(const std::vector<at::Tensor>& outputs) {
    std::vector<at::Tensor> cotangents;
    for (const at::Tensor& output : outputs) {
        cotangents.push_back(pattern(output));
    }
    return cotangents;
}

std::vector<at::Tensor> backward(const std::vector<at::Tensor>& outputs, const Leaves& leaves,
                                 const std::vector<at::Tensor>& cotangents) {
    if (outputs.empty() || leaves.tensors.empty()) {
        return std::vector<at::Tensor>(leaves.tensors.size());
    }
    return torch::autograd::grad(outputs, leaves.tensors, cotangents, /*retain_graph=*/false,
                                 /*create_graph=*/false, /*allow_unused=*/true);
}

}  // namespace

Gradients gradients_of(const torch::jit::Module& module, const std::string& method,
                       const Inputs& inputs) {
    const at::AutoGradMode enabled(true);
    const Leaves leaves = leaves_of(module, inputs);
    const auto outputs = forward(module, method, inputs, leaves);
    const auto values = backward(outputs, leaves, patterns(outputs));
    Gradients found;
    for (std::size_t i = 0; i < values.size(); ++i) {
        found.all.push_back({leaves.names[i], values[i]});
    }
    return found;
}

std::function<void()> training_step(const torch::jit::Module& module, const std::string& method,
                                    const Inputs& inputs) {
    const at::AutoGradMode enabled(true);
    const Leaves leaves = leaves_of(module, inputs);
    const auto cotangents = patterns(forward(module, method, inputs, leaves));
    return [=] {
        const at::AutoGradMode enabled_then(true);
        backward(forward(module, method, inputs, leaves), leaves, cotangents);
    };
}

std::string wrong_gradient(const Gradients& result, const Gradients& original,
                           const Gradients& reference, const Tolerance& tolerance) {
    if (result.all.size() != original.all.size() || reference.all.size() != original.all.size()) {
        return "it has other parameters than the original";
    }
    for (std::size_t i = 0; i < original.all.size(); ++i) {
        const at::Tensor& want = original.all[i].value;
        const at::Tensor& have = result.all[i].value;
        if (is_zero(want) && is_zero(have)) {
            continue;
        }
        if (!want.defined() || !have.defined()) {
            return (have.defined() ? "it gives a gradient, which the original does not, for "
                                   : "it gives no gradient for ") +
                   original.all[i].of;
        }
        const at::Tensor exact = reference.all[i].value;
        const auto compared = compare(have, want, exact.defined() ? exact : want.to(at::kDouble),
                                      Norm::euclidean, tolerance);
        if (!compared.problem.empty()) {
            return "the gradient of " + original.all[i].of + " is wrong: " + compared.problem;
        }
    }
    return "";
}

}  // namespace twinkle::runtime
