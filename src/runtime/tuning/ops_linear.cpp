// Linear layers: alone, with an activation, as gates, several of one input. The pack has no
// gradients of products: those are LibTorch's, and what stands between them is the pack's.

#include "twinkle/ops.h"

#include "runtime/tuning/ops_parts.h"

namespace twinkle::ops {

namespace {

using runtime::call_pack;
using runtime::ExactSizes;
using runtime::PackOperation;
using Triple = std::tuple<Tensor, Tensor, Tensor>;
using Columns = ExactSizes<1>;  // of the results, as are all of these

Tensor plain_linear(const Tensor& x, const Tensor& weight, const Maybe& bias, const Columns&) {
    return at::linear(x, weight, bias);
}
template <class Activation>
Tensor activated_linear(const Tensor& x, const Tensor& weight, const Maybe& bias, const Columns&) {
    return Activation::of(at::linear(x, weight, bias));
}
template <class Activation>
Tensor gated_linear(const Tensor& x, const Tensor& gate_weight, const Maybe& gate_bias,
                    const Tensor& up_weight, const Maybe& up_bias, const Columns&) {
    return Activation::of(at::linear(x, gate_weight, gate_bias)) *
           at::linear(x, up_weight, up_bias);
}
Pair plain_linear2(const Tensor& x, const Tensor& weight1, const Maybe& bias1,
                   const Tensor& weight2, const Maybe& bias2, const ExactSizes<2>&) {
    return {at::linear(x, weight1, bias1), at::linear(x, weight2, bias2)};
}
Triple plain_linear3(const Tensor& x, const Tensor& weight1, const Maybe& bias1,
                     const Tensor& weight2, const Maybe& bias2, const Tensor& weight3,
                     const Maybe& bias3, const ExactSizes<3>&) {
    return {at::linear(x, weight1, bias1), at::linear(x, weight2, bias2),
            at::linear(x, weight3, bias3)};
}

// The gradients of one layer: x, weight, bias. Its result is not needed; LibTorch would compute it
// again.
Grads linear_gradients(const Tensor& grad, const Tensor& x, const Tensor& weight,
                       const Maybe& bias) {
    const Tensor rows = grad.reshape({-1, grad.size(last)});
    return {at::matmul(grad, weight), at::mm(rows.t(), x.reshape({-1, x.size(last)})),
            bias ? rows.sum(0) : Tensor()};
}

// Joins the gradients of layers that read the same x: the gradients of x are added.
Grads joined(const std::vector<Grads>& layers) {
    Grads all = layers.at(0);
    for (std::size_t i = 1; i < layers.size(); ++i) {
        all.at(0) = all.at(0) + layers[i].at(0);
        all.insert(all.end(), layers[i].begin() + 1, layers[i].end());
    }
    return all;
}

Grads gradients_of_linear(const Grads& grads, const Tensor& x, const Tensor& weight,
                          const Maybe& bias, const Columns&) {
    return linear_gradients(grads.at(0), x, weight, bias);
}
template <class Activation>
Grads gradients_of_activated(const Grads& grads, const Tensor& x, const Tensor& weight,
                             const Maybe& bias, const Columns&) {
    const Tensor grad = call_pack<Tensor>(std::string(Activation::name) + "_backward", grads.at(0),
                                          at::linear(x, weight, bias));
    return linear_gradients(grad, x, weight, bias);
}
template <class Activation>
Grads gradients_of_gated(const Grads& grads, const Tensor& x, const Tensor& gate_weight,
                         const Maybe& gate_bias, const Tensor& up_weight, const Maybe& up_bias,
                         const Columns&) {
    const auto [of_gate, of_up] =
        call_pack<Pair>(std::string(Activation::name) + "_mul_backward", grads.at(0),
                        at::linear(x, gate_weight, gate_bias), at::linear(x, up_weight, up_bias));
    return joined({linear_gradients(of_gate, x, gate_weight, gate_bias),
                   linear_gradients(of_up, x, up_weight, up_bias)});
}
Grads gradients_of_linear2(const Grads& grads, const Tensor& x, const Tensor& weight1,
                           const Maybe& bias1, const Tensor& weight2, const Maybe& bias2,
                           const ExactSizes<2>&) {
    return joined({linear_gradients(grads.at(0), x, weight1, bias1),
                   linear_gradients(grads.at(1), x, weight2, bias2)});
}
Grads gradients_of_linear3(const Grads& grads, const Tensor& x, const Tensor& weight1,
                           const Maybe& bias1, const Tensor& weight2, const Maybe& bias2,
                           const Tensor& weight3, const Maybe& bias3, const ExactSizes<3>&) {
    return joined({linear_gradients(grads.at(0), x, weight1, bias1),
                   linear_gradients(grads.at(1), x, weight2, bias2),
                   linear_gradients(grads.at(2), x, weight3, bias3)});
}

using OneLayer = PackOperation<Tensor(Tensor, Tensor, Maybe, Columns)>;
using TwoInOne = PackOperation<Tensor(Tensor, Tensor, Maybe, Tensor, Maybe, Columns)>;
using TwoLayers = PackOperation<Pair(Tensor, Tensor, Maybe, Tensor, Maybe, ExactSizes<2>)>;
using ThreeLayers =
    PackOperation<Triple(Tensor, Tensor, Maybe, Tensor, Maybe, Tensor, Maybe, ExactSizes<3>)>;

const OneLayer& linear_operation() {
    static const OneLayer operation("linear", plain_linear, gradients_of_linear);
    return operation;
}
template <class Activation>
const OneLayer& activated_operation() {
    static const OneLayer operation(std::string("linear_") + Activation::name,
                                    activated_linear<Activation>,
                                    gradients_of_activated<Activation>);
    return operation;
}
template <class Activation>
const TwoInOne& gated_operation() {
    static const TwoInOne operation(std::string("linear_") + Activation::name + "_mul",
                                    gated_linear<Activation>, gradients_of_gated<Activation>);
    return operation;
}
const TwoLayers& linear2_operation() {
    static const TwoLayers operation("linear2", plain_linear2, gradients_of_linear2);
    return operation;
}
const ThreeLayers& linear3_operation() {
    static const ThreeLayers operation("linear3", plain_linear3, gradients_of_linear3);
    return operation;
}

template <class Activation>
Tensor linear_activated(const Tensor& x, const Tensor& weight, const Maybe& bias) {
    return executor()(activated_operation<Activation>(), x, weight, bias, Columns{weight.size(0)});
}
template <class Activation>
Tensor linear_gated(const Tensor& x, const Tensor& gate_weight, const Maybe& gate_bias,
                    const Tensor& up_weight, const Maybe& up_bias) {
    return executor()(gated_operation<Activation>(), x, gate_weight, gate_bias, up_weight, up_bias,
                      Columns{gate_weight.size(0)});
}

// A weight as large as it was.
void fit_weight(const Tensor& x, Tensor& weight, std::int64_t columns) {
    const std::int64_t depth = x.size(last);
    runtime::require_possible({depth == 0 ? 0 : x.numel() / depth, columns});
    weight = runtime::narrowed(weight, 0, columns);
}
void fit_one(OneLayer::Arguments& arguments) {
    auto& [x, weight, bias, columns] = arguments;
    fit_weight(x, weight, columns[0]);
}
void fit_gate(TwoInOne::Arguments& arguments) {
    auto& [x, gate_weight, gate_bias, up_weight, up_bias, columns] = arguments;
    fit_weight(x, gate_weight, columns[0]);
    fit_weight(x, up_weight, columns[0]);
}
void fit_two(TwoLayers::Arguments& arguments) {
    auto& [x, weight1, bias1, weight2, bias2, columns] = arguments;
    fit_weight(x, weight1, columns[0]);
    fit_weight(x, weight2, columns[1]);
}
void fit_three(ThreeLayers::Arguments& arguments) {
    auto& [x, weight1, bias1, weight2, bias2, weight3, bias3, columns] = arguments;
    fit_weight(x, weight1, columns[0]);
    fit_weight(x, weight2, columns[1]);
    fit_weight(x, weight3, columns[2]);
}

}  // namespace

void list_linear(TuneTable& table) {
    list(table, linear_operation(), fit_one);
    list(table, activated_operation<Silu>(), fit_one);
    list(table, activated_operation<Gelu>(), fit_one);
    list(table, activated_operation<GeluTanh>(), fit_one);
    list(table, activated_operation<Relu>(), fit_one);
    list(table, gated_operation<Silu>(), fit_gate);
    list(table, gated_operation<Gelu>(), fit_gate);
    list(table, gated_operation<GeluTanh>(), fit_gate);
    list(table, linear2_operation(), fit_two);
    list(table, linear3_operation(), fit_three);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Maybe& bias) {
    return executor()(linear_operation(), x, weight, bias, Columns{weight.size(0)});
}
Tensor linear_silu(const Tensor& x, const Tensor& weight, const Maybe& bias) {
    return linear_activated<Silu>(x, weight, bias);
}
Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Maybe& bias) {
    return linear_activated<Gelu>(x, weight, bias);
}
Tensor linear_gelu_tanh(const Tensor& x, const Tensor& weight, const Maybe& bias) {
    return linear_activated<GeluTanh>(x, weight, bias);
}
Tensor linear_relu(const Tensor& x, const Tensor& weight, const Maybe& bias) {
    return linear_activated<Relu>(x, weight, bias);
}

Tensor linear_silu_mul(const Tensor& x, const Tensor& gate_weight, const Maybe& gate_bias,
                       const Tensor& up_weight, const Maybe& up_bias) {
    return linear_gated<Silu>(x, gate_weight, gate_bias, up_weight, up_bias);
}
Tensor linear_gelu_mul(const Tensor& x, const Tensor& gate_weight, const Maybe& gate_bias,
                       const Tensor& up_weight, const Maybe& up_bias) {
    return linear_gated<Gelu>(x, gate_weight, gate_bias, up_weight, up_bias);
}
Tensor linear_gelu_tanh_mul(const Tensor& x, const Tensor& gate_weight, const Maybe& gate_bias,
                            const Tensor& up_weight, const Maybe& up_bias) {
    return linear_gated<GeluTanh>(x, gate_weight, gate_bias, up_weight, up_bias);
}

Pair linear2(const Tensor& x, const Tensor& weight1, const Maybe& bias1, const Tensor& weight2,
             const Maybe& bias2) {
    return executor()(linear2_operation(), x, weight1, bias1, weight2, bias2,
                      ExactSizes<2>{weight1.size(0), weight2.size(0)});
}
Triple linear3(const Tensor& x, const Tensor& weight1, const Maybe& bias1, const Tensor& weight2,
               const Maybe& bias2, const Tensor& weight3, const Maybe& bias3) {
    return executor()(linear3_operation(), x, weight1, bias1, weight2, bias2, weight3, bias3,
                      ExactSizes<3>{weight1.size(0), weight2.size(0), weight3.size(0)});
}

}  // namespace twinkle::ops
