// Activations and gates, each with its gradient in the pack.

#include "twinkle/ops.h"

#include "runtime/tuning/ops_parts.h"

namespace twinkle::ops {

namespace {

using runtime::call_pack;
using runtime::PackOperation;

// Other ways to write gelu_tanh; the second has fewer digits of a constant.
struct GeluNew : GeluTanh {
    static constexpr const char* name = "gelu_new";
};
struct GeluFast : GeluTanh {
    static constexpr const char* name = "gelu_fast";
};
struct GeluQuick {
    static constexpr const char* name = "gelu_quick";
    static Tensor of(const Tensor& x) {
        constexpr double factor = 1.702;
        return x * at::sigmoid(x * factor);
    }
};

// What they are named as, and what LibTorch computes.
template <class Activation>
struct Gate {
    static std::string name() { return std::string(Activation::name) + "_mul"; }
    static Tensor of(const Tensor& gate, const Tensor& up) { return Activation::of(gate) * up; }
};
template <class Activation>
struct Halves {
    static std::string name() { return std::string(Activation::name) + "_and_mul"; }
    static Tensor of(const Tensor& x) {
        const auto halves = x.chunk(2, last);
        return Activation::of(halves.at(0)) * halves.at(1);
    }
};
struct MulAndSilu {
    static std::string name() { return "mul_and_silu"; }
    static Tensor of(const Tensor& x) {
        const auto halves = x.chunk(2, last);
        return halves.at(0) * at::silu(halves.at(1));
    }
};
template <class Activation>
struct Alone {
    static std::string name() { return Activation::name; }
    static Tensor of(const Tensor& x) { return Activation::of(x); }
};

template <class Formula>
Grads gradient_of_one(const Grads& grads, const Tensor& x) {
    return {call_pack<Tensor>(Formula::name() + "_backward", grads.at(0), x)};
}
template <class Formula>
Grads gradients_of_gate(const Grads& grads, const Tensor& gate, const Tensor& up) {
    const auto [of_gate, of_up] =
        call_pack<Pair>(Formula::name() + "_backward", grads.at(0), gate, up);
    return {of_gate, of_up};
}

template <class Formula>
const auto& one_operation() {
    static const PackOperation<Tensor(Tensor)> operation(Formula::name(), Formula::of,
                                                         gradient_of_one<Formula>);
    return operation;
}
template <class Activation>
const auto& gate_operation() {
    using Formula = Gate<Activation>;
    static const PackOperation<Tensor(Tensor, Tensor)> operation(Formula::name(), Formula::of,
                                                                 gradients_of_gate<Formula>);
    return operation;
}

template <class Activation>
Tensor activated(const Tensor& x) {
    return executor()(one_operation<Alone<Activation>>(), x);
}
template <class Activation>
Tensor gated(const Tensor& gate, const Tensor& up) {
    return executor()(gate_operation<Activation>(), gate, up);
}
template <class Activation>
Tensor halves_gated(const Tensor& x) {
    return executor()(one_operation<Halves<Activation>>(), x);
}

}  // namespace

void list_activations(TuneTable& table) {
    list(table, one_operation<Alone<Silu>>());
    list(table, one_operation<Alone<Gelu>>());
    list(table, one_operation<Alone<GeluTanh>>());
    list(table, one_operation<Alone<GeluNew>>());
    list(table, one_operation<Alone<GeluFast>>());
    list(table, one_operation<Alone<GeluQuick>>());
    list(table, one_operation<Alone<Relu>>());
    list(table, one_operation<Halves<Silu>>());
    list(table, one_operation<Halves<Gelu>>());
    list(table, one_operation<Halves<GeluTanh>>());
    list(table, one_operation<MulAndSilu>());
    list(table, gate_operation<Silu>());
    list(table, gate_operation<Gelu>());
    list(table, gate_operation<GeluTanh>());
}

Tensor silu(const Tensor& x) {
    return activated<Silu>(x);
}
Tensor gelu(const Tensor& x) {
    return activated<Gelu>(x);
}
Tensor gelu_tanh(const Tensor& x) {
    return activated<GeluTanh>(x);
}
Tensor gelu_new(const Tensor& x) {
    return activated<GeluNew>(x);
}
Tensor gelu_fast(const Tensor& x) {
    return activated<GeluFast>(x);
}
Tensor gelu_quick(const Tensor& x) {
    return activated<GeluQuick>(x);
}
Tensor relu(const Tensor& x) {
    return activated<Relu>(x);
}

Tensor silu_mul(const Tensor& gate, const Tensor& up) {
    return gated<Silu>(gate, up);
}
Tensor gelu_mul(const Tensor& gate, const Tensor& up) {
    return gated<Gelu>(gate, up);
}
Tensor gelu_tanh_mul(const Tensor& gate, const Tensor& up) {
    return gated<GeluTanh>(gate, up);
}

Tensor silu_and_mul(const Tensor& x) {
    return halves_gated<Silu>(x);
}
Tensor gelu_and_mul(const Tensor& x) {
    return halves_gated<Gelu>(x);
}
Tensor gelu_tanh_and_mul(const Tensor& x) {
    return halves_gated<GeluTanh>(x);
}
Tensor mul_and_silu(const Tensor& x) {
    return executor()(one_operation<MulAndSilu>(), x);
}

}  // namespace twinkle::ops
