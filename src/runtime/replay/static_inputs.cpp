#include "runtime/replay/static_inputs.h"

#include <torch/script.h>

#include <cstdint>

namespace twinkle::runtime {

namespace {

// Compares bits: NaN equals itself.
bool same_bits(const at::Tensor& one, const at::Tensor& other) {
    const auto bits = [](const at::Tensor& tensor) {
        return tensor.resolve_conj().resolve_neg().contiguous().view({-1}).view(at::kByte);
    };
    return one.numel() == 0 || bits(one).equal(bits(other));
}

}  // namespace

StaticInputs::StaticInputs(const Values& inputs) {
    const c10::InferenceMode no_inference(false);
    const torch::NoGradGuard no_grad;
    values_ = with_tensors(inputs, [](const at::Tensor& tensor) {
        at::Tensor own = at::empty_like(tensor.detach());
        own.copy_(tensor.detach());
        return own;
    });
    tensors_ = tensors_of(values_);
    for (const at::Tensor& tensor : tensors_) {
        versions_.push_back(tensor._version());
    }
}

void StaticInputs::copy_from(const Values& inputs) {
    const torch::NoGradGuard no_grad;
    const std::vector<at::Tensor> sources = tensors_of(inputs);
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        tensors_[i].copy_(sources.at(i), /*non_blocking=*/true);
    }
}

bool StaticInputs::were_written(const Values& inputs) const {
    const torch::NoGradGuard no_grad;
    const std::vector<at::Tensor> sources = tensors_of(inputs);
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        if (static_cast<std::uint32_t>(tensors_[i]._version()) != versions_[i] ||
            !same_bits(tensors_[i], sources.at(i).detach())) {
            return true;
        }
    }
    return false;
}

}  // namespace twinkle::runtime
