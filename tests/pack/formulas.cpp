// The formulas, and the comparison with them.
#include "formulas.h"

#include <torch/csrc/autograd/autograd.h>

#include <cmath>

namespace pack {
namespace {

Tensor quick(const Tensor& x) {
    return x * at::sigmoid(1.702 * x);
}

Tensor written_out(const Tensor& x) {
    return 0.5 * x * (1 + at::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x.pow(3))));
}

Tensor fast(const Tensor& x) {
    return 0.5 * x * (1 + at::tanh(x * 0.7978845608 * (1 + 0.044715 * x * x)));
}

Tensor silu(const Tensor& x) {
    return at::silu(x);
}
Tensor gelu(const Tensor& x) {
    return at::gelu(x);
}
Tensor gelu_tanh(const Tensor& x) {
    return at::gelu(x, "tanh");
}
Tensor relu(const Tensor& x) {
    return at::relu(x);
}

using Activation = Tensor (*)(const Tensor&);

Formula unary(const std::string& name, Activation f) {
    return {name,
            {Kind::values},
            {},
            [f](const Tensors& in) { return Tensors{f(in[0])}; },
            name + "_backward"};
}

Formula gated(const std::string& name, Activation f) {
    return {name,
            {Kind::values, Kind::values},
            {},
            [f](const Tensors& in) { return Tensors{f(in[0]) * in[1]}; },
            name + "_backward"};
}

Formula halves(const std::string& name, Activation f, bool first) {
    Formula formula = unary(name, f);
    formula.even = true;
    formula.original = [f, first](const Tensors& in) {
        const auto parts = in[0].chunk(2, -1);
        return Tensors{first ? f(parts[0]) * parts[1] : parts[0] * f(parts[1])};
    };
    return formula;
}

Tensor rms(const Tensor& x, const Tensor& weight, double offset, bool last) {
    const Tensor wide = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
    const Tensor normal = wide * at::rsqrt(wide.pow(2).mean(-1, true) + 1e-6);
    if (!weight.defined()) return normal.to(x.scalar_type());
    if (last)
        return ((offset + weight.to(at::promote_types(wide.scalar_type(), weight.scalar_type()))) *
                normal)
            .to(x.scalar_type());
    const Tensor factor = offset == 0 ? weight : offset + weight;
    return factor * normal.to(x.scalar_type());
}

Formula rms_norm(bool add, bool weighted, double offset, bool last) {
    Formula formula;
    formula.op = add ? "add_rms_norm" : "rms_norm";
    formula.kinds.assign(add ? 2 : 1, Kind::values);
    formula.kinds.push_back(weighted ? Kind::row : Kind::absent);
    formula.numbers = {1e-6, offset, last};
    formula.any_row = true;
    formula.original = [=](const Tensors& in) {
        if (!add) return Tensors{rms(in[0], in[1], offset, last)};
        const Tensor sum = in[0] + in[1];
        return Tensors{rms(sum, in[2], offset, last), sum};
    };
    if (!add) formula.backward = "rms_norm_backward";
    return formula;
}

// PyTorch's CUDA kernel does not support weights of another dtype, the one for CPUs does.
Tensor layer_norm_of(const Tensor& x, const Tensor& weight, const Tensor& bias) {
    const auto differs = [&](const Tensor& row) {
        return row.defined() && row.dtype() != x.dtype();
    };
    const bool elsewhere = !x.is_cpu() && (differs(weight) || differs(bias));
    const auto there = [&](const Tensor& tensor) {
        return elsewhere && tensor.defined() ? tensor.cpu() : tensor;
    };
    return at::layer_norm(there(x), {x.size(-1)}, there(weight), there(bias), 1e-5).to(x.device());
}

Formula layer_norm(bool add, bool weighted, bool biased) {
    Formula formula;
    formula.op = add ? "add_layer_norm" : "layer_norm";
    formula.kinds.assign(add ? 2 : 1, Kind::values);
    formula.kinds.push_back(weighted ? Kind::row : Kind::absent);
    formula.kinds.push_back(biased ? Kind::row : Kind::absent);
    formula.numbers = {1e-5};
    formula.original = [add](const Tensors& in) {
        const Tensor x = add ? in[0] + in[1] : in[0];
        const size_t row = add ? 2 : 1;
        const Tensor normal = layer_norm_of(x, in[row], in[row + 1]);
        return add ? Tensors{normal, x} : Tensors{normal};
    };
    // A bias without a weight occurs nowhere.
    if (!add && weighted == biased) formula.backward = "layer_norm_backward";
    formula.backward_takes_bias = false;
    return formula;
}

Tensors in_double(const Tensors& inputs) {
    Tensors doubles;
    for (const Tensor& input : inputs)
        doubles.push_back(input.defined() ? input.to(at::kDouble) : input);
    return doubles;
}

// PyTorch's gradients of the first result, for the inputs that are present.
Tensors gradients(const Function& function, const Tensors& inputs, const Tensor& grad) {
    Tensors leaves = inputs, there;
    for (Tensor& leaf : leaves) {
        if (!leaf.defined()) continue;
        leaf = leaf.detach().clone().set_requires_grad(true);
        there.push_back(leaf);
    }
    const Tensor output = function(leaves)[0];
    return torch::autograd::grad({output}, there, {grad.to(output.scalar_type())});
}

std::string described(const Formula& formula, const Tensors& inputs) {
    std::string text = formula.op;
    for (const auto& number : formula.numbers)
        text += " " + (number.isBool() ? std::to_string(number.toBool())
                                       : std::to_string(number.toDouble()));
    std::ostringstream all;
    for (const Tensor& input : inputs) {
        if (input.defined())
            all << "; " << input.scalar_type() << " " << input.sizes() << " " << input.strides();
        else
            all << "; None";
    }
    return text + all.str();
}

}  // namespace

Tensors Formula::inputs(const std::function<Tensor()>& values, int64_t n,
                        at::ScalarType row) const {
    Tensors inputs;
    for (Kind kind : kinds) {
        if (kind == Kind::values) inputs.push_back(values());
        if (kind == Kind::row) inputs.push_back(random({n}, row));
        if (kind == Kind::absent) inputs.push_back({});
    }
    return inputs;
}

const std::vector<Formula>& elementwise_formulas() {
    static const std::vector<Formula> all{
        unary("silu", silu),
        unary("gelu", gelu),
        unary("gelu_tanh", gelu_tanh),
        unary("gelu_new", written_out),
        unary("gelu_fast", fast),
        unary("gelu_quick", quick),
        unary("relu", relu),
        gated("silu_mul", silu),
        gated("gelu_mul", gelu),
        gated("gelu_tanh_mul", gelu_tanh),
        halves("silu_and_mul", silu, true),
        halves("mul_and_silu", silu, false),
        halves("gelu_and_mul", gelu, true),
        halves("gelu_tanh_and_mul", gelu_tanh, true),
    };
    return all;
}

const std::vector<Formula>& norm_formulas() {
    static const std::vector<Formula> all = [] {
        std::vector<Formula> formulas;
        for (bool add : {false, true}) {
            for (bool last : {false, true})
                for (double offset : {0.0, 1.0})
                    formulas.push_back(rms_norm(add, true, offset, last));
            formulas.push_back(rms_norm(add, false, 0, false));
            for (bool weighted : {true, false})
                for (bool biased : {true, false})
                    formulas.push_back(layer_norm(add, weighted, biased));
        }
        return formulas;
    }();
    return all;
}

void check_right(const Formula& formula, const Tensors& inputs) {
    const Tensors results = formula.run(inputs), originals = formula.original(inputs);
    Tensors exact = formula.original(in_double(inputs));
    // The rounded sum is what gets normalized.
    if (results.size() == 2) {
        Tensors rounded = in_double(inputs);
        rounded[0] = originals[1].to(at::kDouble);
        rounded[1] = at::zeros_like(rounded[0]);
        exact = formula.original(rounded);
    }
    REQUIRE(results.size() == originals.size());  // also counts the comparison
    for (size_t i = 0; i < results.size(); ++i) {
        const double units = formula.op.find("norm") != std::string::npos ? norm_float_units
                             : formula.op.find("gelu") == 0               ? gelu_float_units
                                                                          : 0.8;
        const auto verdict = judge(results[i], originals[i], exact[i], units);
        if (!verdict.right)
            FAIL_CHECK(described(formula, inputs) << ", result " << i << ": " << verdict.text);
    }
}

void check_gradients(const Formula& formula, const Tensors& inputs, const Tensor& grad) {
    Tensors arguments{grad};
    for (size_t i = 0; i < inputs.size(); ++i)
        if (i < 2 || formula.backward_takes_bias) arguments.push_back(inputs[i]);
    const Tensors results = call(formula.backward, arguments, formula.numbers);
    const Tensors own = gradients(formula.original, inputs, grad);
    const Tensors exact = gradients(formula.original, in_double(inputs), grad);
    REQUIRE(results.size() >= own.size());
    for (size_t i = 0; i < own.size(); ++i) {
        const auto verdict = judge(results[i], own[i], exact[i]);
        if (!verdict.right)
            FAIL_CHECK(described(formula, inputs) << ", gradient " << i << ": " << verdict.text);
    }
    for (size_t i = own.size(); i < results.size(); ++i) CHECK(results[i].numel() == 0);
}

}  // namespace pack
