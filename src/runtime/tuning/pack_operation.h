#pragma once
// An operator of the bundled kernels beside LibTorch's own way of computing it, as an operation
// whose configuration says which of them runs.

#include "tuning/declaration.h"
#include "twinkle/executor.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdint>
#include <string>
#include <vector>

namespace twinkle::runtime {

// Loaded at the first use. Empty: it is not installed, or cannot be loaded here.
struct BundledPack {
    std::string op_namespace;
    std::string build_id;
    tuning::Declaration tuning;
};
const BundledPack& bundled_pack();

// Whether the pack has code for such a call: its device, and the dtypes of its tensors.
bool pack_serves(const std::string& op, const Invocation& invocation);

std::string pack_build();  // of the pack and LibTorch

struct PackCfg {
    std::string implementation = "twinkle-pack";  // or "libtorch"
    // Keyword arguments of the pack's operators (its tuning.toml); 0: by their own rules.
    std::int64_t grain = 0;
    std::int64_t reading = 0;

    template <class Self, class Visit>
    static void fields(Self& self, Visit&& visit) {
        visit("implementation", self.implementation);
        visit("grain", self.grain);
        visit("reading", self.reading);
    }
};

// The pack's first, by its own rules, then those that it declares, then LibTorch.
std::vector<PackCfg> pack_configurations(const std::string& op, const Invocation& invocation);

template <class T>
struct ByReference {
    using type = T;
};
template <>
struct ByReference<at::Tensor> {
    using type = const at::Tensor&;
};
template <>
struct ByReference<std::optional<at::Tensor>> {
    using type = const std::optional<at::Tensor>&;
};

// An operator by the types that it takes.
template <class R, class... A>
R call_pack(const std::string& op, const A&... arguments) {
    return c10::Dispatcher::singleton()
        .findSchemaOrThrow((bundled_pack().op_namespace + "::" + op).c_str(), "")
        .template typed<R(typename ByReference<A>::type...)>()
        .call(arguments...);
}

// One that takes a configuration.
template <class R, class... A>
R call_configured(const std::string& op, const PackCfg& cfg, const A&... arguments) {
    return call_pack<R, A..., std::int64_t, std::int64_t>(op, arguments..., cfg.grain, cfg.reading);
}

// Of what LibTorch computes, with LibTorch's gradients: one for each tensor.
template <class R, class... A>
std::vector<at::Tensor> gradients_of(R (*formula)(const A&...),
                                     const std::vector<at::Tensor>& grads, const A&... arguments) {
    const at::AutoGradMode enabled(true);
    std::vector<at::Tensor> leaves;
    std::vector<std::size_t> places;
    std::size_t tensors = 0;
    const auto leaf = [&]<class T>(const T& argument) -> T {
        const auto own = [&](const at::Tensor& tensor) {
            const std::size_t place = tensors++;
            at::Tensor copy = tensor.defined() ? tensor.detach() : tensor;
            if (copy.defined() && at::isFloatingType(copy.scalar_type())) {
                copy.set_requires_grad(true);
                leaves.push_back(copy);
                places.push_back(place);
            }
            return copy;
        };
        if constexpr (std::same_as<T, at::Tensor>) {
            return own(argument);
        } else if constexpr (std::same_as<T, std::optional<at::Tensor>>) {
            const at::Tensor made = own(argument.value_or(at::Tensor()));
            return argument ? T(made) : std::nullopt;
        } else {
            return argument;
        }
    };
    const std::tuple<A...> own{leaf(arguments)...};  // braces: in this order
    std::vector<at::Tensor> outputs;
    detail::append_tensors(outputs, std::apply(formula, own));
    std::vector<at::Tensor> results;
    std::vector<at::Tensor> given;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (grads.at(i).defined()) {
            results.push_back(outputs[i]);
            given.push_back(grads[i]);
        }
    }
    std::vector<at::Tensor> all(tensors);
    const auto found = torch::autograd::grad(results, leaves, given, std::nullopt, false, true);
    for (std::size_t i = 0; i < found.size(); ++i) {
        all[places[i]] = found[i];
    }
    return all;
}

template <class Signature>
class PackOperation;

template <class R, class... A>
class PackOperation<R(A...)> final : public Operation<PackCfg> {
public:
    using Formula = R (*)(const A&...);
    // One for each tensor of the call.
    using Backward = std::vector<at::Tensor> (*)(const std::vector<at::Tensor>&, const A&...);

    PackOperation(std::string op, Formula formula, Backward backward)
        : op_(std::move(op)), formula_(formula), backward_(backward) {}

    std::string name() const override { return "twinkle-pack::" + op_; }
    std::string build() const override { return pack_build(); }
    PackCfg heuristic_cfg(const Invocation& invocation) const override {
        return {pack_serves(op_, invocation) ? "twinkle-pack" : "libtorch"};
    }
    std::vector<PackCfg> config_space(const Invocation& invocation) const override {
        return pack_configurations(op_, invocation);
    }
    PackCfg heuristic_backward_cfg(const Invocation& invocation) const override {
        return heuristic_cfg(invocation);
    }
    std::vector<PackCfg> backward_config_space(const Invocation& invocation) const override {
        return {heuristic_cfg(invocation), {"libtorch"}};
    }

    R run(const A&... arguments, const PackCfg& cfg) const {
        return cfg.implementation == "libtorch" ? formula_(arguments...)
                                                : call_configured<R, A...>(op_, cfg, arguments...);
    }
    std::vector<at::Tensor> vjp(const std::vector<at::Tensor>& grads, const A&... arguments,
                                const PackCfg& cfg) const {
        return cfg.implementation == "libtorch"
                   ? gradients_of<R, A...>(formula_, grads, arguments...)
                   : backward_(grads, arguments...);
    }

private:
    std::string op_;
    Formula formula_;
    Backward backward_;
};

}  // namespace twinkle::runtime
