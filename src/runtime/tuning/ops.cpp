// The typed functions over the bundled kernels: what LibTorch computes in their place, and whose
// gradients are whose.

#include "twinkle/ops.h"

#include "base/text.h"
#include "runtime/tuning/pack_operation.h"
#include "runtime/tuning/recorded_arguments.h"
#include "twinkle/error.h"

#include <ATen/ATen.h>

#include <map>
#include <string_view>
#include <type_traits>

namespace twinkle::ops {

namespace {

using at::Tensor;
using runtime::call_configured;
using runtime::call_pack;
using runtime::PackOperation;
using Maybe = std::optional<Tensor>;
using Grads = std::vector<Tensor>;
using Pair = std::tuple<Tensor, Tensor>;

constexpr std::int64_t last = -1;

Tensor plain_silu(const Tensor& x) {
    return at::silu(x);
}
Tensor plain_gelu(const Tensor& x) {
    return at::gelu(x);
}
Tensor plain_gelu_tanh(const Tensor& x) {
    return at::gelu(x, "tanh");
}
Tensor plain_relu(const Tensor& x) {
    return at::relu(x);
}

using Activation = Tensor (*)(const Tensor&);

template <Activation activation>
Tensor plain_gate(const Tensor& gate, const Tensor& up) {
    return activation(gate) * up;
}
template <Activation activation>
Tensor plain_halves(const Tensor& x) {
    const auto halves = x.chunk(2, last);
    return activation(halves.at(0)) * halves.at(1);
}
Tensor plain_mul_and_silu(const Tensor& x) {
    const auto halves = x.chunk(2, last);
    return halves.at(0) * at::silu(halves.at(1));
}

Tensor plain_rms_norm(const Tensor& x, const Maybe& weight, const double& eps, const double& offset,
                      const bool& round_last) {
    const bool wide = x.scalar_type() == at::kDouble;
    const Tensor exact = x.to(wide ? at::kDouble : at::kFloat);
    Tensor y = exact * at::rsqrt(exact.square().mean(last, true) + eps);
    if (!round_last) {
        y = y.to(x.scalar_type());
    }
    if (weight) {
        const Tensor factor = round_last ? weight->to(y.scalar_type()) : *weight;
        y = y * (offset == 0 ? factor : factor + offset);
    }
    return round_last ? y.to(x.scalar_type()) : y;
}

Tensor plain_layer_norm(const Tensor& x, const Maybe& weight, const Maybe& bias,
                        const double& eps) {
    return at::layer_norm(x, {x.size(last)}, weight, bias, eps);
}

Pair plain_add_rms_norm(const Tensor& x, const Tensor& residual, const Maybe& weight,
                        const double& eps, const double& offset, const bool& round_last) {
    const Tensor total = x + residual;
    return {plain_rms_norm(total, weight, eps, offset, round_last), total};
}

Pair plain_add_layer_norm(const Tensor& x, const Tensor& residual, const Maybe& weight,
                          const Maybe& bias, const double& eps) {
    const Tensor total = x + residual;
    return {plain_layer_norm(total, weight, bias, eps), total};
}

Tensor rotated(const Tensor& x, bool interleaved) {
    if (interleaved) {
        return at::stack({-x.slice(last, 1, std::nullopt, 2), x.slice(last, 0, std::nullopt, 2)},
                         last)
            .flatten(-2);
    }
    const auto halves = x.chunk(2, last);
    return at::cat({-halves.at(1), halves.at(0)}, last);
}

Tensor plain_rotary(const Tensor& x, const Tensor& cos, const Tensor& sin,
                    const bool& interleaved) {
    const std::int64_t count = cos.size(last);
    const Tensor turned = x.narrow(last, 0, count);
    const Tensor y = turned * cos + rotated(turned, interleaved) * sin;
    return count == x.size(last) ? y
                                 : at::cat({y, x.narrow(last, count, x.size(last) - count)}, last);
}

// Gradients by the pack's own operators.

template <const char* name>
Grads of_one(const Grads& grads, const Tensor& x) {
    return {call_pack<Tensor>(std::string(name) + "_backward", grads.at(0), x)};
}
template <const char* name>
Grads of_gate(const Grads& grads, const Tensor& gate, const Tensor& up) {
    const auto [of_gate, of_up] =
        call_pack<Pair>(std::string(name) + "_backward", grads.at(0), gate, up);
    return {of_gate, of_up};
}

Grads rms_norm_gradients(const Grads& grads, const Tensor& x, const Maybe& weight,
                         const double& eps, const double& offset, const bool& round_last) {
    const auto [of_x, of_weight] =
        call_pack<Pair>("rms_norm_backward", grads.at(0), x, weight, eps, offset, round_last);
    return {of_x, weight ? of_weight : Tensor()};
}

Grads layer_norm_gradients(const Grads& grads, const Tensor& x, const Maybe& weight,
                           const Maybe& bias, const double& eps) {
    const Tensor& grad = grads.at(0);
    const auto [of_x, of_weight, of_bias] =
        call_pack<std::tuple<Tensor, Tensor, Tensor>>("layer_norm_backward", grad, x, weight, eps);
    const Tensor own_bias = weight ? of_bias : grad.reshape({-1, grad.size(last)}).sum(0);
    return {of_x, weight ? of_weight : Tensor(), bias ? own_bias : Tensor()};
}

Grads add_rms_norm_gradients(const Grads& grads, const Tensor& x, const Tensor& residual,
                             const Maybe& weight, const double& eps, const double& offset,
                             const bool& round_last) {
    Grads found = rms_norm_gradients(grads, x + residual, weight, eps, offset, round_last);
    const Tensor of_total = found.at(0) + grads.at(1);
    return {of_total, of_total, found.at(1)};
}

Grads add_layer_norm_gradients(const Grads& grads, const Tensor& x, const Tensor& residual,
                               const Maybe& weight, const Maybe& bias, const double& eps) {
    Grads found = layer_norm_gradients(grads, x + residual, weight, bias, eps);
    const Tensor of_total = found.at(0) + grads.at(1);
    return {of_total, of_total, found.at(1), found.at(2)};
}

// The pack's operator has a last argument that turns backwards.
struct Rotary final : Operation<runtime::PackCfg> {
    std::string name() const override { return "twinkle-pack::apply_rotary"; }
    std::string build() const override { return runtime::pack_build(); }
    runtime::PackCfg heuristic_cfg(const Invocation& invocation) const override {
        return {runtime::pack_serves("apply_rotary", invocation) ? "twinkle-pack" : "libtorch"};
    }
    std::vector<runtime::PackCfg> config_space(const Invocation& invocation) const override {
        return runtime::pack_configurations("apply_rotary", invocation);
    }
    runtime::PackCfg heuristic_backward_cfg(const Invocation& invocation) const override {
        return heuristic_cfg(invocation);
    }
    std::vector<runtime::PackCfg> backward_config_space(
        const Invocation& invocation) const override {
        return {heuristic_cfg(invocation), {"libtorch"}};
    }
    Tensor run(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved,
               const runtime::PackCfg& cfg) const {
        return cfg.implementation == "libtorch"
                   ? plain_rotary(x, cos, sin, interleaved)
                   : call_configured<Tensor>("apply_rotary", cfg, x, cos, sin, interleaved, false);
    }
    Grads vjp(const Grads& grads, const Tensor& x, const Tensor& cos, const Tensor& sin,
              bool interleaved, const runtime::PackCfg& cfg) const {
        if (cfg.implementation != "libtorch") {
            return {call_configured<Tensor>("apply_rotary", {}, grads.at(0), cos, sin, interleaved,
                                            true),
                    {},
                    {}};
        }
        return {runtime::gradients_of<Tensor, Tensor, Tensor, Tensor, bool>(plain_rotary, grads, x,
                                                                            cos, sin, interleaved)
                    .at(0),
                {},
                {}};
    }
};

const Executor& executor() {
    static const Executor executor(selector());
    return executor;
}

// Their names as arguments of templates.
constexpr char silu_name[] = "silu", gelu_name[] = "gelu", gelu_tanh_name[] = "gelu_tanh",
               relu_name[] = "relu", silu_mul_name[] = "silu_mul", gelu_mul_name[] = "gelu_mul",
               gelu_tanh_mul_name[] = "gelu_tanh_mul", silu_and_mul_name[] = "silu_and_mul",
               gelu_and_mul_name[] = "gelu_and_mul", gelu_tanh_and_mul_name[] = "gelu_tanh_and_mul",
               mul_and_silu_name[] = "mul_and_silu";

template <const char* name, Activation formula>
const auto& one_operation() {
    static const PackOperation<Tensor(Tensor)> operation(name, formula, of_one<name>);
    return operation;
}
template <const char* name, Activation formula>
Tensor one(const Tensor& x) {
    return executor()(one_operation<name, formula>(), x);
}

template <const char* name, Activation activation>
const auto& gate_operation() {
    static const PackOperation<Tensor(Tensor, Tensor)> operation(name, plain_gate<activation>,
                                                                 of_gate<name>);
    return operation;
}
template <const char* name, Activation activation>
Tensor gate_of(const Tensor& gate, const Tensor& up) {
    return executor()(gate_operation<name, activation>(), gate, up);
}

const auto& rms_norm_operation() {
    static const PackOperation<Tensor(Tensor, Maybe, double, double, bool)> operation(
        "rms_norm", plain_rms_norm, rms_norm_gradients);
    return operation;
}
const auto& layer_norm_operation() {
    static const PackOperation<Tensor(Tensor, Maybe, Maybe, double)> operation(
        "layer_norm", plain_layer_norm, layer_norm_gradients);
    return operation;
}
const auto& add_rms_norm_operation() {
    static const PackOperation<Pair(Tensor, Tensor, Maybe, double, double, bool)> operation(
        "add_rms_norm", plain_add_rms_norm, add_rms_norm_gradients);
    return operation;
}
const auto& add_layer_norm_operation() {
    static const PackOperation<Pair(Tensor, Tensor, Maybe, Maybe, double)> operation(
        "add_layer_norm", plain_add_layer_norm, add_layer_norm_gradients);
    return operation;
}
const auto& rotary_operation() {
    static const Rotary operation;
    return operation;
}

// Tunes a recorded call of an operation with arguments of these types.
template <class Operation, class... A>
Measurement tune(const Operation& operation, const Invocation& invocation,
                 const AutotuneOptions& options, std::type_identity<std::tuple<A...>>) {
    auto arguments = runtime::RecordedArguments(invocation).all<A...>();
    if (invocation.mode == RunMode::forward) {
        std::get<0>(arguments).set_requires_grad(true);
    }
    return autotune(executor(), operation, arguments, options).measurement;
}

using Tune = Measurement (*)(const Invocation&, const AutotuneOptions&);

template <const auto& (*operation)(), class... A>
Measurement tune_by(const Invocation& invocation, const AutotuneOptions& options) {
    return tune(operation(), invocation, options, std::type_identity<std::tuple<A...>>());
}

const std::map<std::string, Tune>& tuned_by_name() {
    static const std::map<std::string, Tune> all = {
        {silu_name, tune_by<one_operation<silu_name, plain_silu>, Tensor>},
        {gelu_name, tune_by<one_operation<gelu_name, plain_gelu>, Tensor>},
        {gelu_tanh_name, tune_by<one_operation<gelu_tanh_name, plain_gelu_tanh>, Tensor>},
        {relu_name, tune_by<one_operation<relu_name, plain_relu>, Tensor>},
        {silu_and_mul_name,
         tune_by<one_operation<silu_and_mul_name, plain_halves<plain_silu>>, Tensor>},
        {gelu_and_mul_name,
         tune_by<one_operation<gelu_and_mul_name, plain_halves<plain_gelu>>, Tensor>},
        {gelu_tanh_and_mul_name,
         tune_by<one_operation<gelu_tanh_and_mul_name, plain_halves<plain_gelu_tanh>>, Tensor>},
        {mul_and_silu_name, tune_by<one_operation<mul_and_silu_name, plain_mul_and_silu>, Tensor>},
        {silu_mul_name, tune_by<gate_operation<silu_mul_name, plain_silu>, Tensor, Tensor>},
        {gelu_mul_name, tune_by<gate_operation<gelu_mul_name, plain_gelu>, Tensor, Tensor>},
        {gelu_tanh_mul_name,
         tune_by<gate_operation<gelu_tanh_mul_name, plain_gelu_tanh>, Tensor, Tensor>},
        {"rms_norm", tune_by<rms_norm_operation, Tensor, Maybe, double, double, bool>},
        {"layer_norm", tune_by<layer_norm_operation, Tensor, Maybe, Maybe, double>},
        {"add_rms_norm",
         tune_by<add_rms_norm_operation, Tensor, Tensor, Maybe, double, double, bool>},
        {"add_layer_norm", tune_by<add_layer_norm_operation, Tensor, Tensor, Maybe, Maybe, double>},
        {"apply_rotary", tune_by<rotary_operation, Tensor, Tensor, Tensor, bool>},
    };
    return all;
}

}  // namespace

Measurement tune_recorded(const Invocation& invocation, const AutotuneOptions& options) {
    constexpr std::string_view prefix = "twinkle-pack::";
    const std::string& name = invocation.operation;
    const auto known = name.starts_with(prefix) ? tuned_by_name().find(name.substr(prefix.size()))
                                                : tuned_by_name().end();
    if (known == tuned_by_name().end()) {
        throw Error(ErrorCode::not_found, {.what = "the operation is none of the bundled kernels",
                                           .where = base::printable(name),
                                           .why = "only its own program has its code",
                                           .hint = "call autotune_recorded() there"});
    }
    return known->second(invocation, options);
}

ConfigSelectorChain& selector() {
    static ConfigSelectorChain chain;
    return chain;
}

Tensor silu(const Tensor& x) {
    return one<silu_name, plain_silu>(x);
}
Tensor gelu(const Tensor& x) {
    return one<gelu_name, plain_gelu>(x);
}
Tensor gelu_tanh(const Tensor& x) {
    return one<gelu_tanh_name, plain_gelu_tanh>(x);
}
Tensor relu(const Tensor& x) {
    return one<relu_name, plain_relu>(x);
}

Tensor silu_mul(const Tensor& gate, const Tensor& up) {
    return gate_of<silu_mul_name, plain_silu>(gate, up);
}
Tensor gelu_mul(const Tensor& gate, const Tensor& up) {
    return gate_of<gelu_mul_name, plain_gelu>(gate, up);
}
Tensor gelu_tanh_mul(const Tensor& gate, const Tensor& up) {
    return gate_of<gelu_tanh_mul_name, plain_gelu_tanh>(gate, up);
}

Tensor silu_and_mul(const Tensor& x) {
    return one<silu_and_mul_name, plain_halves<plain_silu>>(x);
}
Tensor gelu_and_mul(const Tensor& x) {
    return one<gelu_and_mul_name, plain_halves<plain_gelu>>(x);
}
Tensor gelu_tanh_and_mul(const Tensor& x) {
    return one<gelu_tanh_and_mul_name, plain_halves<plain_gelu_tanh>>(x);
}
Tensor mul_and_silu(const Tensor& x) {
    return one<mul_and_silu_name, plain_mul_and_silu>(x);
}

Tensor rms_norm(const Tensor& x, const Maybe& weight, double eps, double offset, bool round_last) {
    return executor()(rms_norm_operation(), x, weight, eps, offset, round_last);
}

Tensor layer_norm(const Tensor& x, const Maybe& weight, const Maybe& bias, double eps) {
    return executor()(layer_norm_operation(), x, weight, bias, eps);
}

Pair add_rms_norm(const Tensor& x, const Tensor& residual, const Maybe& weight, double eps,
                  double offset, bool round_last) {
    return executor()(add_rms_norm_operation(), x, residual, weight, eps, offset, round_last);
}

Pair add_layer_norm(const Tensor& x, const Tensor& residual, const Maybe& weight, const Maybe& bias,
                    double eps) {
    return executor()(add_layer_norm_operation(), x, residual, weight, bias, eps);
}

Tensor apply_rotary(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved) {
    return executor()(rotary_operation(), x, cos, sin, interleaved);
}

}  // namespace twinkle::ops
