#include "runtime/tuning/pack_operation.h"

namespace twinkle::runtime {

at::Tensor Leaves::leaf(const at::Tensor& tensor) {
    const std::size_t place = tensors_++;
    at::Tensor copy = tensor.defined() ? tensor.detach() : tensor;
    if (copy.defined() && at::isFloatingType(copy.scalar_type())) {
        copy.set_requires_grad(true);
        leaves_.push_back(copy);
        places_.push_back(place);
    }
    return copy;
}

std::vector<at::Tensor> Leaves::gradients(const std::vector<at::Tensor>& outputs,
                                          const std::vector<at::Tensor>& grads) const {
    std::vector<at::Tensor> results;
    std::vector<at::Tensor> given;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (grads.at(i).defined()) {
            results.push_back(outputs[i]);
            given.push_back(grads[i]);
        }
    }
    std::vector<at::Tensor> all(tensors_);
    const auto found = torch::autograd::grad(results, leaves_, given, std::nullopt, false, true);
    for (std::size_t i = 0; i < found.size(); ++i) {
        all[places_[i]] = found[i];
    }
    return all;
}

}  // namespace twinkle::runtime
