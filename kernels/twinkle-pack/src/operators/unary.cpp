// Activations of one tensor.
#include "isa/functions.h"
#include "memory.h"
#include "operators/checks.h"
#include "operators/families.h"
#include "row_walk.h"

namespace twinkle_pack {
namespace {

void plan(const char* name, const Inputs& in, Plan& plan) {
    const View& x = in.tensors[0];
    const DType dtype = supported_dtype(name, "x", x);
    plan.order = Order::of(x);
    plan.add(x, dtype);
}

void plan_backward(const char* name, const Inputs& in, Plan& plan) {
    const View &grad = in.tensors[0], &x = in.tensors[1];
    const DType dtype = supported_dtype(name, "x", x);
    check_gradient(name, grad, x, dtype);
    plan.order = Order::of(x);
    plan.add(x, dtype);
}

template <Activation activation>
void compute(const Inputs& in, const Plan& plan, void* const* results, ParallelFor parallel) {
    const View& x = in.tensors[0];
    const int64_t elements = x.elements();
    if (elements == 0) return;
    const DType dtype = dtype_of(x);
    const RowFunctions& functions = row_functions();
    const auto row = functions.unary[static_cast<int>(activation)][static_cast<int>(dtype)];
    const int64_t bytes = elements * element_size(dtype);
    const bool stream = exceeds_cache(2 * bytes);
    prefer_huge_pages(results[0], bytes);
    const RowShape<2> shape(x.sizes, plan.order, {placed(x), placed(plan.results[0], results[0])},
                            true);
    for_each_piece(
        shape, parallel, [&](char* const* at, int64_t n) { row(at[0], at[1], n, stream); },
        [&] {
            if (stream) functions.fence();
        });
}

template <Activation activation>
void compute_backward(const Inputs& in, const Plan& plan, void* const* results,
                      ParallelFor parallel) {
    const View &grad = in.tensors[0], &x = in.tensors[1];
    const int64_t elements = x.elements();
    if (elements == 0) return;
    const DType dtype = dtype_of(x);
    const auto row =
        row_functions().unary_backward[static_cast<int>(activation)][static_cast<int>(dtype)];
    prefer_huge_pages(results[0], elements * element_size(dtype));
    const RowShape<3> shape(x.sizes, plan.order,
                            {placed(grad), placed(x), placed(plan.results[0], results[0])}, true);
    for_each_piece(
        shape, parallel, [&](char* const* at, int64_t n) { row(at[0], at[1], at[2], n); }, [] {});
}

template <Activation activation>
constexpr Operator forward(const char* name, const char* schema) {
    return {name, schema, "tgr", plan, compute<activation>};
}

template <Activation activation>
constexpr Operator backward(const char* name, const char* schema) {
    return {name, schema, "tt", plan_backward, compute_backward<activation>};
}

#define FORWARD(name) name, name "(Tensor x, *, int grain=0, int reading=0) -> Tensor"
#define BACKWARD(name) name "_backward", name "_backward(Tensor grad, Tensor x) -> Tensor"

}  // namespace

OperatorList unary_operators() {
    using A = Activation;
    static constexpr Operator all[] = {
        forward<A::silu>(FORWARD("silu")),
        backward<A::silu>(BACKWARD("silu")),
        forward<A::gelu>(FORWARD("gelu")),
        backward<A::gelu>(BACKWARD("gelu")),
        forward<A::gelu_tanh>(FORWARD("gelu_tanh")),
        backward<A::gelu_tanh>(BACKWARD("gelu_tanh")),
        // transformers' NewGELU is GELUTanh, written out.
        forward<A::gelu_tanh>(FORWARD("gelu_new")),
        backward<A::gelu_tanh>(BACKWARD("gelu_new")),
        forward<A::gelu_fast>(FORWARD("gelu_fast")),
        backward<A::gelu_fast>(BACKWARD("gelu_fast")),
        forward<A::gelu_quick>(FORWARD("gelu_quick")),
        backward<A::gelu_quick>(BACKWARD("gelu_quick")),
        forward<A::relu>(FORWARD("relu")),
        backward<A::relu>(BACKWARD("relu")),
    };
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack
