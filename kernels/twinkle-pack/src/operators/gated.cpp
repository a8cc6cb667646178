// An activation of one tensor times another.
#include "memory.h"
#include "operators/checks.h"
#include "operators/families.h"
#include "operators/gate_rows.h"
#include "row_walk.h"

namespace twinkle_pack {

void compute_gated(Activation activation, DType dtype, const RowShape<3>& shape,
                   ParallelFor parallel) {
    const RowFunctions& functions = row_functions();
    const auto row = functions.gated[static_cast<int>(activation)][static_cast<int>(dtype)];
    const bool stream = exceeds_cache(3 * shape.rows * shape.n * element_size(dtype));
    for_each_piece(
        shape, parallel, [&](char* const* at, int64_t n) { row(at[0], at[1], at[2], n, stream); },
        [&] {
            if (stream) functions.fence();
        });
}

void compute_gated_backward(Activation activation, DType dtype, const RowShape<5>& shape,
                            ParallelFor parallel) {
    const auto row =
        row_functions().gated_backward[static_cast<int>(activation)][static_cast<int>(dtype)];
    for_each_piece(
        shape, parallel,
        [&](char* const* at, int64_t n) { row(at[0], at[1], at[2], at[3], at[4], n); }, [] {});
}

namespace {

void plan(const char* name, const Inputs& in, Plan& plan) {
    const View &gate = in.tensors[0], &up = in.tensors[1];
    const DType dtype = same_kind(name, "gate", gate, "up", up);
    plan.order = Order::of(gate);
    plan.add(gate, dtype);
}

void plan_backward(const char* name, const Inputs& in, Plan& plan) {
    const View &grad = in.tensors[0], &gate = in.tensors[1], &up = in.tensors[2];
    const DType dtype = same_kind(name, "gate", gate, "up", up);
    check_gradient(name, grad, gate, dtype);
    plan.order = Order::of(gate);
    plan.add(gate, dtype);
    plan.add(gate, dtype);
}

template <Activation activation>
void compute(const Inputs& in, const Plan& plan, void* const* results, ParallelFor parallel) {
    const View &gate = in.tensors[0], &up = in.tensors[1];
    const int64_t elements = gate.elements();
    if (elements == 0) return;
    const DType dtype = dtype_of(gate);
    prefer_huge_pages(results[0], elements * element_size(dtype));
    const RowShape<3> shape(gate.sizes, plan.order,
                            {placed(gate), placed(up), placed(plan.results[0], results[0])}, true);
    compute_gated(activation, dtype, shape, parallel);
}

template <Activation activation>
void compute_backward(const Inputs& in, const Plan& plan, void* const* results,
                      ParallelFor parallel) {
    const View &grad = in.tensors[0], &gate = in.tensors[1], &up = in.tensors[2];
    const int64_t elements = gate.elements();
    if (elements == 0) return;
    const DType dtype = dtype_of(gate);
    for (int i = 0; i < 2; ++i) prefer_huge_pages(results[i], elements * element_size(dtype));
    const RowShape<5> shape(
        gate.sizes, plan.order,
        {placed(grad), placed(gate), placed(up), placed(plan.results[0], results[0]),
         placed(plan.results[1], results[1])},
        true);
    compute_gated_backward(activation, dtype, shape, parallel);
}

template <Activation activation>
constexpr Operator forward(const char* name, const char* schema) {
    return {name, schema, "ttgr", plan, compute<activation>};
}

template <Activation activation>
constexpr Operator backward(const char* name, const char* schema) {
    return {name, schema, "ttt", plan_backward, compute_backward<activation>};
}

#define FORWARD(name) name, name "(Tensor gate, Tensor up, *, int grain=0, int reading=0) -> Tensor"
#define BACKWARD(name) \
    name "_backward", name "_backward(Tensor grad, Tensor gate, Tensor up) -> (Tensor, Tensor)"

}  // namespace

OperatorList gated_operators() {
    using A = Activation;
    static constexpr Operator all[] = {
        forward<A::silu>(FORWARD("silu_mul")),
        backward<A::silu>(BACKWARD("silu_mul")),
        forward<A::gelu>(FORWARD("gelu_mul")),
        backward<A::gelu>(BACKWARD("gelu_mul")),
        forward<A::gelu_tanh>(FORWARD("gelu_tanh_mul")),
        backward<A::gelu_tanh>(BACKWARD("gelu_tanh_mul")),
    };
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack
