// The backward operators of the bundled pack, against PyTorch's gradients in the dtype and in
// double.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>

#include "pack_library.h"

namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Function = std::function<Tensor(const Tensors&)>;

const at::ScalarType dtypes[] = {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble};
constexpr double eps = 1e-6;

Tensor random(at::IntArrayRef shape, at::ScalarType dtype, double scale = 2) {
    return (at::randn(shape, at::kDouble) * scale).to(dtype);
}

c10::OperatorHandle find(const std::string& name) {
    return c10::Dispatcher::singleton().findSchemaOrThrow(
        (pack::op_namespace() + "::" + name).c_str(), "");
}

Tensors rms_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& weight) {
    static const auto op = find("rms_norm_backward")
                               .typed<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&,
                                                                 const Tensor&, double)>();
    const auto [grad_x, grad_weight] = op.call(grad, x, weight, eps);
    return {grad_x, grad_weight};
}

Tensors silu_mul_backward(const Tensor& grad, const Tensor& gate, const Tensor& up) {
    static const auto op =
        find("silu_mul_backward")
            .typed<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&)>();
    const auto [grad_gate, grad_up] = op.call(grad, gate, up);
    return {grad_gate, grad_up};
}

// PyTorch's gradients of a function for these inputs, in their dtypes or in double.
Tensors gradients(const Function& function, const Tensors& inputs, const Tensor& grad,
                  bool in_double) {
    Tensors leaves;
    for (const Tensor& input : inputs) {
        const auto dtype = in_double ? at::kDouble : input.scalar_type();
        leaves.push_back(input.to(dtype).detach().clone().set_requires_grad(true));
    }
    const Tensor output = function(leaves);
    return torch::autograd::grad({output}, leaves, {grad.to(output.scalar_type())});
}

void check(const Function& original, const Function& exact, const Tensors& inputs,
           const Tensor& grad, const Tensors& results) {
    const Tensors own = gradients(original, inputs, grad, false);
    const Tensors want = gradients(exact, inputs, grad, true);
    for (size_t i = 0; i < results.size(); ++i) {
        const auto verdict = pack::judge(results[i], own[i], want[i]);
        INFO("gradient " << i << " of " << inputs[0].sizes() << " " << inputs[0].strides() << " "
                         << inputs[0].scalar_type() << ", " << inputs[1].scalar_type() << ": "
                         << verdict.text);
        CHECK(verdict.right);
    }
}

void check_rms_norm(const Tensor& grad, const Tensor& x, const Tensor& weight) {
    check([](const Tensors& in) { return pack::original_rms_norm(in[0], in[1], eps); },
          [](const Tensors& in) { return pack::exact_rms_norm(in[0], in[1], eps); }, {x, weight},
          grad, rms_norm_backward(grad, x, weight));
}

void check_silu_mul(const Tensor& grad, const Tensor& gate, const Tensor& up) {
    check([](const Tensors& in) { return pack::original_silu_mul(in[0], in[1]); },
          [](const Tensors& in) { return pack::exact_silu_mul(in[0], in[1]); }, {gate, up}, grad,
          silu_mul_backward(grad, gate, up));
}

// Views of [4, 6, n] as a model may produce them; the expanded ones as the gradient of a sum is.
Tensors layouts(int64_t n, at::ScalarType dtype) {
    return {random({4, 6, n}, dtype),
            random({4, 6, 2 * n + 1}, dtype).slice(2, 1, n + 1),
            random({6, 4, n}, dtype).transpose(0, 1),
            random({4, n, 6}, dtype).transpose(1, 2),
            random({1, 6, n}, dtype).expand({4, 6, n}),
            random({1, 1, 1}, dtype).expand({4, 6, n})};
}

std::string refusal(const std::function<void()>& call) {
    try {
        call();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("gradients are right for every dtype, width and layout", "[isa]") {
    at::manual_seed(21);
    for (auto dtype : dtypes)
        for (int64_t n : {1, 2, 7, 16, 17, 33, 64, 65, 257}) {
            const Tensors grads = layouts(n, dtype), xs = layouts(n, dtype), ys = layouts(n, dtype);
            for (size_t i = 0; i < grads.size(); ++i) {
                const Tensor& x = xs[(i * 2 + 1) % (xs.size() - 2)];
                // A row of equal values has a gradient of zero but for rounding.
                check_rms_norm(grads[n < 3 ? 0 : i], x, random({n}, dtype));
                check_silu_mul(grads[i], x, ys[(i + 2) % ys.size()]);
            }
        }
}

TEST_CASE("the gradients of rms_norm have the dtypes of what they belong to", "[isa]") {
    at::manual_seed(22);
    for (auto x_dtype : dtypes)
        for (auto weight_dtype : dtypes) {
            const Tensor x = random({5, 131}, x_dtype), weight = random({131}, weight_dtype);
            const auto dtype = pack::rms_norm(x, weight, eps).scalar_type();
            check_rms_norm(random({5, 131}, dtype), x, weight);
            check_rms_norm(random({5, 131}, dtype), x, random({131, 2}, weight_dtype).select(1, 1));
        }
}

TEST_CASE("gradients over many rows and threads, the same for any number of them", "[isa]") {
    at::manual_seed(23);
    const int threads = at::get_num_threads();
    for (auto dtype : {at::kFloat, at::kBFloat16}) {
        const Tensor grad = random({300, 515}, dtype), x = random({300, 515}, dtype);
        const Tensor weight = random({515}, dtype);
        check_rms_norm(grad, x, weight);
        check_rms_norm(random({9001, 3}, dtype), random({9001, 3}, dtype), random({3}, dtype));
        check_rms_norm(random({2, 30011}, dtype), random({2, 30011}, dtype),
                       random({30011}, dtype));
        check_silu_mul(grad, x, grad.flip(0));
        const Tensors norm = rms_norm_backward(grad, x, weight),
                      silu = silu_mul_backward(grad, x, x);
        at::set_num_threads(threads == 1 ? 2 : 1);
        const Tensors again = rms_norm_backward(grad, x, weight);
        CHECK(again[0].equal(norm[0]));
        CHECK(again[1].equal(norm[1]));
        CHECK(silu_mul_backward(grad, x, x)[0].equal(silu[0]));
        at::set_num_threads(threads);
    }
}

TEST_CASE("gradients agree with finite differences in double", "[isa]") {
    at::manual_seed(24);
    const Tensor grad = random({3, 9}, at::kDouble), x = random({3, 9}, at::kDouble);
    const Tensor other = random({3, 9}, at::kDouble), weight = random({9}, at::kDouble);
    const auto check_slope = [&](const Function& function, const Tensors& inputs,
                                 const Tensors& found) {
        constexpr double step = 1e-6;
        for (size_t i = 0; i < inputs.size(); ++i)
            for (int64_t at = 0; at < inputs[i].numel(); ++at) {
                const auto loss = [&](double by) {
                    Tensors moved = inputs;
                    moved[i] = inputs[i].clone();
                    moved[i].view({-1})[at] += by;
                    return (function(moved) * grad).sum().item<double>();
                };
                const double slope = (loss(step) - loss(-step)) / (2 * step);
                CHECK(found[i].view({-1})[at].item<double>() ==
                      Approx(slope).epsilon(1e-6).margin(1e-7));
            }
    };
    check_slope([](const Tensors& in) { return pack::rms_norm(in[0], in[1], eps); }, {x, weight},
                rms_norm_backward(grad, x, weight));
    check_slope([](const Tensors& in) { return pack::silu_mul(in[0], in[1]); }, {x, other},
                silu_mul_backward(grad, x, other));
}

TEST_CASE("gradients of nothing, and over the whole range of the gate", "[isa]") {
    for (auto dtype : dtypes) {
        const Tensor none = at::empty({0, 8}, dtype), weight = at::ones({8}, dtype);
        const Tensors norm = rms_norm_backward(none, none, weight);
        CHECK(norm[0].sizes() == none.sizes());
        CHECK(norm[1].equal(at::zeros_like(weight)));
        const Tensor empty = at::empty({3, 0}, dtype);
        CHECK(rms_norm_backward(empty, empty, at::empty({0}, dtype))[1].numel() == 0);
        CHECK(silu_mul_backward(none, none, none)[1].sizes() == none.sizes());
        const Tensor gate = at::linspace(-150, 150, 10007, at::kDouble).to(dtype);
        check_silu_mul(at::ones_like(gate), gate, at::ones_like(gate));
        check_silu_mul(random({}, dtype), random({}, dtype), random({}, dtype));
    }
}

TEST_CASE("backward refuses what is no gradient of the result") {
    const Tensor x = at::ones({3, 4}), weight = at::ones({4});
    const auto has = [](const std::string& text, const std::string& part) {
        INFO(text);
        return text.find(part) != std::string::npos;
    };
    CHECK(has(refusal([&] { rms_norm_backward(at::ones({4, 3}), x, weight); }),
              "the result's shape [3, 4], but has [4, 3]"));
    CHECK(has(refusal([&] { rms_norm_backward(x.to(at::kHalf), x, weight); }),
              "grad is float16 but the result was float32"));
    CHECK(has(refusal([&] { silu_mul_backward(x.to(at::kDouble), x, x); }), "float64"));
    CHECK(has(refusal([&] { silu_mul_backward(x, x, at::ones({4})); }), "one shape"));
    const auto meta = at::TensorOptions().device(at::kMeta);
    const Tensor rows = at::empty({2, 8}, meta);
    CHECK(rms_norm_backward(rows, rows, at::empty({8}, meta))[1].sizes() == at::IntArrayRef{8});
}
