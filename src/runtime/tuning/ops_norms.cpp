// Norms, alone and of a sum, with the pack's gradients.

#include "twinkle/ops.h"

#include "runtime/tuning/ops_parts.h"

namespace twinkle::ops {

namespace {

using runtime::call_pack;
using runtime::PackOperation;

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
}  // namespace

void list_norms(TuneTable& table) {
    list(table, rms_norm_operation());
    list(table, layer_norm_operation());
    list(table, add_rms_norm_operation());
    list(table, add_layer_norm_operation());
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

}  // namespace twinkle::ops
