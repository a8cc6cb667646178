// An activation of one half of each row times the other half: gate and up in one tensor.
#include "memory.h"
#include "operators/checks.h"
#include "operators/families.h"
#include "operators/gate_rows.h"
#include "row_walk.h"

namespace twinkle_pack {
namespace {

void check_even(const char* name, const View& x) {
    if (x.dims == 0 || x.last_size() % 2 != 0)
        refuse(name,
               "x must have an even last size, two halves, but has the shape " + shape_text(x));
}

void plan(const char* name, const Inputs& in, Plan& plan) {
    const View& x = in.tensors[0];
    const DType dtype = supported_dtype(name, "x", x);
    check_even(name, x);
    plan.order = Order::keeping_rows(x);
    plan.add_with_last(x, x.last_size() / 2, dtype);
}

void plan_backward(const char* name, const Inputs& in, Plan& plan) {
    const View &grad = in.tensors[0], &x = in.tensors[1];
    const DType dtype = supported_dtype(name, "x", x);
    check_even(name, x);
    int64_t sizes[most_dims];
    for (int64_t d = 0; d < x.dims; ++d) sizes[d] = x.sizes[d];
    sizes[x.dims - 1] /= 2;
    View result = x;
    result.sizes = sizes;
    check_gradient(name, grad, result, dtype);
    plan.order = Order::keeping_rows(x);
    plan.add(x, dtype);
}

template <Activation activation, bool gate_first>
void compute(const Inputs& in, const Plan& plan, void* const* results, ParallelFor parallel) {
    const View& x = in.tensors[0];
    const int64_t elements = x.elements();
    if (elements == 0) return;
    const DType dtype = dtype_of(x);
    prefer_huge_pages(results[0], elements / 2 * element_size(dtype));
    const Result& result = plan.results[0];
    const Halves halves(placed(x), x.last_size() / 2, gate_first);
    const RowShape<3> shape(result.sizes, plan.order,
                            {halves.gate, halves.up, placed(result, results[0])}, true);
    compute_gated(activation, dtype, shape, parallel);
}

template <Activation activation, bool gate_first>
void compute_backward(const Inputs& in, const Plan& plan, void* const* results,
                      ParallelFor parallel) {
    const View &grad = in.tensors[0], &x = in.tensors[1];
    const int64_t elements = x.elements();
    if (elements == 0) return;
    const DType dtype = dtype_of(x);
    prefer_huge_pages(results[0], elements * element_size(dtype));
    const int64_t half = x.last_size() / 2;
    const Halves values(placed(x), half, gate_first);
    const Halves gradients(placed(plan.results[0], results[0]), half, gate_first);
    const RowShape<5> shape(grad.sizes, plan.order,
                            {placed(grad), values.gate, values.up, gradients.gate, gradients.up},
                            true);
    compute_gated_backward(activation, dtype, shape, parallel);
}

template <Activation activation, bool gate_first = true>
constexpr Operator forward(const char* name, const char* schema) {
    return {name, schema, "tgr", plan, compute<activation, gate_first>};
}

template <Activation activation, bool gate_first = true>
constexpr Operator backward(const char* name, const char* schema) {
    return {name, schema, "tt", plan_backward, compute_backward<activation, gate_first>};
}

#define FORWARD(name) name, name "(Tensor x, *, int grain=0, int reading=0) -> Tensor"
#define BACKWARD(name) name "_backward", name "_backward(Tensor grad, Tensor x) -> Tensor"

}  // namespace

OperatorList halves_operators() {
    using A = Activation;
    static constexpr Operator all[] = {
        forward<A::silu>(FORWARD("silu_and_mul")),
        backward<A::silu>(BACKWARD("silu_and_mul")),
        forward<A::silu, false>(FORWARD("mul_and_silu")),
        backward<A::silu, false>(BACKWARD("mul_and_silu")),
        forward<A::gelu>(FORWARD("gelu_and_mul")),
        backward<A::gelu>(BACKWARD("gelu_and_mul")),
        forward<A::gelu_tanh>(FORWARD("gelu_tanh_and_mul")),
        backward<A::gelu_tanh>(BACKWARD("gelu_tanh_and_mul")),
    };
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack
