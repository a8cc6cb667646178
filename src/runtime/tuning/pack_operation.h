#pragma once
// An operator of the bundled kernels beside LibTorch's own way of computing it, as an operation
// whose configuration says which of them runs.

#include "runtime/tuning/pack_operator.h"
#include "twinkle/executor.h"

#include <torch/csrc/autograd/autograd.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace twinkle::runtime {

// Tensors of a call as leaves of autograd.
class Leaves {
public:
    template <class T>
    T of(const T& argument) {
        if constexpr (std::same_as<T, at::Tensor>) {
            return leaf(argument);
        } else if constexpr (std::same_as<T, std::optional<at::Tensor>>) {
            const at::Tensor made = leaf(argument.value_or(at::Tensor()));
            return argument ? T(made) : std::nullopt;
        } else {
            return argument;
        }
    }
    // One for each tensor that was asked for.
    std::vector<at::Tensor> gradients(const std::vector<at::Tensor>& outputs,
                                      const std::vector<at::Tensor>& grads) const;

private:
    at::Tensor leaf(const at::Tensor& tensor);

    std::vector<at::Tensor> leaves_;
    std::vector<std::size_t> places_;
    std::size_t tensors_ = 0;
};

// The gradients of a formula, computed by LibTorch's autograd.
template <class R, class... A>
std::vector<at::Tensor> gradients_of(R (*formula)(const A&...),
                                     const std::vector<at::Tensor>& grads, const A&... arguments) {
    const at::AutoGradMode enabled(true);
    Leaves leaves;
    const std::tuple<A...> own{leaves.of(arguments)...};  // braces: in this order
    std::vector<at::Tensor> outputs;
    detail::append_tensors(outputs, std::apply(formula, own));
    return leaves.gradients(outputs, grads);
}

// What all of them have in common.
class OfPack : public Operation<CfgFields> {
public:
    // Without gradients by the pack, LibTorch's are all that there is to choose from.
    OfPack(std::string op, bool has_gradients)
        : op_(std::make_shared<const PackOperator>(std::move(op))), has_gradients_(has_gradients) {}

    std::string name() const override { return "twinkle-pack::" + op_->name(); }
    std::string build() const override { return pack_build(); }
    CfgFields heuristic_cfg(const Invocation& invocation) const override {
        return op_->usual(invocation);
    }
    std::vector<CfgFields> config_space(const Invocation& invocation) const override {
        return op_->configurations(invocation);
    }
    CfgFields heuristic_backward_cfg(const Invocation& invocation) const override {
        return has_gradients_ ? op_->usual(invocation) : cfg_of(by_libtorch);
    }
    std::vector<CfgFields> backward_config_space(const Invocation& invocation) const override {
        return {heuristic_backward_cfg(invocation), cfg_of(by_libtorch)};
    }

protected:
    const PackOperator& op() const { return *op_; }

private:
    std::shared_ptr<const PackOperator> op_;  // shared with the copies that autograd keeps
    bool has_gradients_;
};

template <class Signature>
class PackOperation;

template <class R, class... A>
class PackOperation<R(A...)> final : public OfPack {
public:
    using Arguments = std::tuple<A...>;
    using Formula = R (*)(const A&...);
    // One for each tensor of the call.
    using Backward = std::vector<at::Tensor> (*)(const std::vector<at::Tensor>&, const A&...);

    // Without `backward` LibTorch differentiates the formula.
    PackOperation(std::string op, Formula formula, Backward backward)
        : OfPack(std::move(op), backward != nullptr), formula_(formula), backward_(backward) {}

    R run(const A&... arguments, const CfgFields& cfg) const {
        if (is_by_pack(cfg)) {
            if (auto computed = op().template call<R>(cfg, arguments...)) {
                return *std::move(computed);
            }
        }
        return formula_(arguments...);
    }
    std::vector<at::Tensor> vjp(const std::vector<at::Tensor>& grads, const A&... arguments,
                                const CfgFields& cfg) const {
        return is_by_pack(cfg) && backward_ != nullptr
                   ? backward_(grads, arguments...)
                   : gradients_of<R, A...>(formula_, grads, arguments...);
    }

private:
    Formula formula_;
    Backward backward_;
};

}  // namespace twinkle::runtime
