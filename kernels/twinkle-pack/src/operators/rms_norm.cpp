// Root mean square normalization, of x or of x + residual.
#include "isa/functions.h"
#include "memory.h"
#include "operators/checks.h"
#include "operators/families.h"
#include "operators/norm_gradient.h"
#include "row_walk.h"

namespace twinkle_pack {
namespace {

struct Numbers {
    double eps, offset;
    bool round_last;

    explicit Numbers(const Inputs& in)
        : eps(in.numbers[0]), offset(in.numbers[1]), round_last(in.numbers[2] != 0) {}
};

int weight_index(const View& weight) {
    return weight.is_there() ? static_cast<int>(dtype_of(weight)) : no_weight;
}

// Returns the result's dtype.
DType check(const char* name, const View& x, const View& weight, bool round_last) {
    const DType dtype = supported_dtype(name, "x", x);
    if (x.dims == 0) refuse(name, "x has no dimension to normalize over");
    if (!weight.is_there()) return dtype;
    const DType weight_dtype = supported_dtype(name, "weight", weight);
    check_row(name, "weight", weight, x);
    return round_last ? dtype : promoted(dtype, weight_dtype);
}

RmsNormRow row_of(const View& x, const View& weight, bool round_last) {
    const RowFunctions& functions = row_functions();
    const auto& rows = round_last ? functions.rms_norm_last : functions.rms_norm;
    return rows[static_cast<int>(dtype_of(x))][weight_index(weight)];
}

void plan(const char* name, const Inputs& in, Plan& plan) {
    const View& x = in.tensors[0];
    const DType dtype = check(name, x, in.tensors[1], Numbers(in).round_last);
    plan.order = Order::keeping_rows(x);
    plan.add(x, dtype);
}

void compute(const Inputs& in, const Plan& plan, void* const* results, ParallelFor parallel) {
    const View &x = in.tensors[0], &weight = in.tensors[1];
    const int64_t elements = x.elements();
    if (elements == 0) return;
    const Numbers numbers(in);
    const auto row = row_of(x, weight, numbers.round_last);
    const Result& result = plan.results[0];
    prefer_huge_pages(results[0], elements * element_size(result.dtype));
    const RowShape<2> shape(x.sizes, plan.order, {placed(x), placed(result, results[0])}, false);
    for_each_row(shape, parallel, [&](char* const* at, char* const* next) {
        row(at[0], next[0], weight.data, at[1], shape.n, numbers.eps, numbers.offset);
    });
}

void plan_add(const char* name, const Inputs& in, Plan& plan) {
    const View &x = in.tensors[0], &residual = in.tensors[1];
    const DType sum = same_kind(name, "x", x, "residual", residual);
    const DType dtype = check(name, x, in.tensors[2], Numbers(in).round_last);
    plan.order = Order::keeping_rows(x);
    plan.add(x, dtype);
    plan.add(x, sum);
}

void compute_add(const Inputs& in, const Plan& plan, void* const* results, ParallelFor parallel) {
    const View &x = in.tensors[0], &residual = in.tensors[1], &weight = in.tensors[2];
    const int64_t elements = x.elements();
    if (elements == 0) return;
    const Numbers numbers(in);
    const auto row = row_of(x, weight, numbers.round_last);
    const auto add = row_functions().add[static_cast<int>(dtype_of(x))];
    for (int i = 0; i < 2; ++i)
        prefer_huge_pages(results[i], elements * element_size(plan.results[i].dtype));
    const RowShape<4> shape(x.sizes, plan.order,
                            {placed(x), placed(residual), placed(plan.results[0], results[0]),
                             placed(plan.results[1], results[1])},
                            false);
    for_each_row(shape, parallel, [&](char* const* at, char* const* next) {
        add(at[0], at[1], at[3], shape.n);
        row(at[3], next[0], weight.data, at[2], shape.n, numbers.eps, numbers.offset);
    });
}

void plan_backward(const char* name, const Inputs& in, Plan& plan) {
    const View &grad = in.tensors[0], &x = in.tensors[1], &weight = in.tensors[2];
    const DType dtype = check(name, x, weight, Numbers(in).round_last);
    check_gradient(name, grad, x, dtype);
    plan.order = Order::keeping_rows(x);
    plan.add(x, dtype_of(x));
    plan.add_row(weight.is_there() ? x.last_size() : 0,
                 weight.is_there() ? dtype_of(weight) : dtype_of(x));
}

void compute_backward(const Inputs& in, const Plan& plan, void* const* results,
                      ParallelFor parallel) {
    const View &grad = in.tensors[0], &x = in.tensors[1], &weight = in.tensors[2];
    const Numbers numbers(in);
    const RowFunctions& functions = row_functions();
    const auto& rows =
        numbers.round_last ? functions.rms_norm_last_backward : functions.rms_norm_backward;
    const Result& result = plan.results[0];
    prefer_huge_pages(results[0], x.elements() * element_size(result.dtype));
    const RowShape<3> shape(x.sizes, plan.order,
                            {placed(grad), placed(x), placed(result, results[0])}, false);
    compute_norm_gradients(
        {rows[static_cast<int>(dtype_of(x))][weight_index(weight)],
         functions.store_sums[static_cast<int>(plan.results[1].dtype)], weight.data, numbers.eps,
         numbers.offset, weight.is_there() ? results[1] : nullptr, nullptr},
        shape, parallel);
}

}  // namespace

OperatorList rms_norm_operators() {
    static constexpr Operator all[] = {
        {"rms_norm",
         "rms_norm(Tensor x, Tensor? weight, float eps=1e-06, float offset=0., bool "
         "round_last=False, *, int grain=0, int reading=0) -> Tensor",
         "toffbgr", plan, compute},
        {"add_rms_norm",
         "add_rms_norm(Tensor x, Tensor residual, Tensor? weight, float eps=1e-06, float "
         "offset=0., bool "
         "round_last=False, *, int grain=0, int reading=0) -> (Tensor, Tensor)",
         "ttoffbgr", plan_add, compute_add},
        {"rms_norm_backward",
         "rms_norm_backward(Tensor grad, Tensor x, Tensor? weight, float eps=1e-06, float "
         "offset=0., bool "
         "round_last=False) -> (Tensor, Tensor)",
         "ttoffb", plan_backward, compute_backward},
    };
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack
