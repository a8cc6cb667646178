// An activation of one tensor times another, or of the halves of one tensor; and their gradients.
#include "cuda/elementwise.h"
#include "cuda/families.h"
#include "operators/gate_rows.h"

namespace twinkle_pack::cuda {
namespace {

template <class A>
struct Gate {
    static constexpr int inputs = 2, outputs = 1;
    template <class V>
    static __device__ void apply(const typename V::reg (&in)[2], typename V::reg (&out)[1]) {
        out[0] = V::mul(A::template value<V>(in[0]), in[1]);
    }
};

// In: grad, gate, up. Out: the gradients of gate and up.
template <class A>
struct GateGradient {
    static constexpr int inputs = 3, outputs = 2;
    template <class V>
    static __device__ void apply(const typename V::reg (&in)[3], typename V::reg (&out)[2]) {
        const Slope<V> slope = A::template slope<V>(in[1]);
        out[0] = V::mul(V::mul(in[0], in[2]), slope.derivative);
        out[1] = V::mul(in[0], slope.value);
    }
};

template <class A>
void forward(const Inputs& in, const Plan& plan, void* const* results, const Queue& queue) {
    const View &gate = in.tensors[0], &up = in.tensors[1];
    if (gate.elements() == 0) return;
    launch_elementwise<Gate<A>>(
        dtype_of(gate),
        RowShape<3>(gate.sizes, plan.order,
                    {placed(gate), placed(up), placed(plan.results[0], results[0])}, true),
        queue);
}

template <class A>
void backward(const Inputs& in, const Plan& plan, void* const* results, const Queue& queue) {
    const View &grad = in.tensors[0], &gate = in.tensors[1], &up = in.tensors[2];
    if (gate.elements() == 0) return;
    launch_elementwise<GateGradient<A>>(
        dtype_of(gate),
        RowShape<5>(gate.sizes, plan.order,
                    {placed(grad), placed(gate), placed(up), placed(plan.results[0], results[0]),
                     placed(plan.results[1], results[1])},
                    true),
        queue);
}

// The halves of rows whose elements are `step` apart.
Halves halves_of(const Placed& whole, int64_t last_size, int64_t step, bool gate_first) {
    return Halves(whole, last_size / 2 * (last_size > 1 ? step : 1), gate_first);
}

template <class A, bool gate_first>
void halves_forward(const Inputs& in, const Plan& plan, void* const* results, const Queue& queue) {
    const View& x = in.tensors[0];
    if (x.elements() == 0) return;
    const Result& result = plan.results[0];
    const Halves halves = halves_of(placed(x), x.last_size(), x.strides[x.dims - 1], gate_first);
    launch_elementwise<Gate<A>>(
        dtype_of(x),
        RowShape<3>(result.sizes, plan.order, {halves.gate, halves.up, placed(result, results[0])},
                    true),
        queue);
}

template <class A, bool gate_first>
void halves_backward(const Inputs& in, const Plan& plan, void* const* results, const Queue& queue) {
    const View &grad = in.tensors[0], &x = in.tensors[1];
    if (x.elements() == 0) return;
    const Result& result = plan.results[0];
    const Halves values = halves_of(placed(x), x.last_size(), x.strides[x.dims - 1], gate_first);
    const Halves gradients = halves_of(placed(result, results[0]), x.last_size(), 1, gate_first);
    launch_elementwise<GateGradient<A>>(
        dtype_of(x),
        RowShape<5>(grad.sizes, plan.order,
                    {placed(grad), values.gate, values.up, gradients.gate, gradients.up}, true),
        queue);
}

}  // namespace

KernelList gated_kernels() {
    static const Kernel all[] = {
        {"silu_mul", forward<Silu>},
        {"silu_mul_backward", backward<Silu>},
        {"gelu_mul", forward<Gelu>},
        {"gelu_mul_backward", backward<Gelu>},
        {"gelu_tanh_mul", forward<GeluTanh>},
        {"gelu_tanh_mul_backward", backward<GeluTanh>},
        {"silu_and_mul", halves_forward<Silu, true>},
        {"silu_and_mul_backward", halves_backward<Silu, true>},
        {"mul_and_silu", halves_forward<Silu, false>},
        {"mul_and_silu_backward", halves_backward<Silu, false>},
        {"gelu_and_mul", halves_forward<Gelu, true>},
        {"gelu_and_mul_backward", halves_backward<Gelu, true>},
        {"gelu_tanh_and_mul", halves_forward<GeluTanh, true>},
        {"gelu_tanh_and_mul_backward", halves_backward<GeluTanh, true>},
    };
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack::cuda
