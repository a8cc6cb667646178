// Activations of one tensor, and their gradients.
#include "cuda/elementwise.h"
#include "cuda/families.h"

namespace twinkle_pack::cuda {
namespace {

template <class A>
struct Value {
    static constexpr int inputs = 1, outputs = 1;
    template <class V>
    static __device__ void apply(const typename V::reg (&in)[1], typename V::reg (&out)[1]) {
        out[0] = A::template value<V>(in[0]);
    }
};

template <class A>
struct Gradient {
    static constexpr int inputs = 2, outputs = 1;
    template <class V>
    static __device__ void apply(const typename V::reg (&in)[2], typename V::reg (&out)[1]) {
        out[0] = gradient<V, A>(in[0], in[1]);
    }
};

template <class A>
void forward(const Inputs& in, const Plan& plan, void* const* results, const Queue& queue) {
    const View& x = in.tensors[0];
    if (x.elements() == 0) return;
    launch_elementwise<Value<A>>(
        dtype_of(x),
        RowShape<2>(x.sizes, plan.order, {placed(x), placed(plan.results[0], results[0])}, true),
        queue);
}

template <class A>
void backward(const Inputs& in, const Plan& plan, void* const* results, const Queue& queue) {
    const View &grad = in.tensors[0], &x = in.tensors[1];
    if (x.elements() == 0) return;
    launch_elementwise<Gradient<A>>(
        dtype_of(x),
        RowShape<3>(x.sizes, plan.order,
                    {placed(grad), placed(x), placed(plan.results[0], results[0])}, true),
        queue);
}

}  // namespace

KernelList unary_kernels() {
    static const Kernel all[] = {
        {"silu", forward<Silu>},
        {"silu_backward", backward<Silu>},
        {"gelu", forward<Gelu>},
        {"gelu_backward", backward<Gelu>},
        {"gelu_tanh", forward<GeluTanh>},
        {"gelu_tanh_backward", backward<GeluTanh>},
        {"gelu_new", forward<GeluTanh>},
        {"gelu_new_backward", backward<GeluTanh>},
        {"gelu_fast", forward<GeluFast>},
        {"gelu_fast_backward", backward<GeluFast>},
        {"gelu_quick", forward<GeluQuick>},
        {"gelu_quick_backward", backward<GeluQuick>},
        {"relu", forward<Relu>},
        {"relu_backward", backward<Relu>},
    };
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack::cuda
