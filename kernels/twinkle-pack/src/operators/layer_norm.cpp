// Layer normalization, of x or of x + residual.
#include <cstring>
#include <vector>

#include "isa/functions.h"
#include "memory.h"
#include "operators/checks.h"
#include "operators/families.h"
#include "operators/norm_gradient.h"
#include "row_walk.h"

namespace twinkle_pack {
namespace {

void check_weight(const char* name, const char* argument, const View& weight, const View& x) {
    if (!weight.is_there()) return;
    const DType dtype = supported_dtype(name, argument, weight);
    check_row(name, argument, weight, x);
    const bool half = element_size(dtype_of(x)) == 2;
    if (dtype != dtype_of(x) && !(half && dtype == DType::float32))
        refuse(name, std::string(argument) + " is " + dtype_name(weight.scalar_type) +
                         " but x is " + dtype_name(x.scalar_type) +
                         "; it may have x's dtype, or float32 where that is a half precision");
}

DType check(const char* name, const View& x, const View& weight, const View& bias) {
    const DType dtype = supported_dtype(name, "x", x);
    if (x.dims == 0) refuse(name, "x has no dimension to normalize over");
    check_weight(name, "weight", weight, x);
    check_weight(name, "bias", bias, x);
    if (weight.is_there() && bias.is_there() && weight.scalar_type != bias.scalar_type)
        refuse(name, "weight is " + dtype_name(weight.scalar_type) + " but bias is " +
                         dtype_name(bias.scalar_type));
    return dtype;
}

// Weight and bias for the inner loops, which take both or none: creates a missing one.
class Affine {
public:
    Affine(const View& x, const View& weight, const View& bias)
        : weight(weight.data), bias(bias.data) {
        index = no_weight;
        if (!weight.is_there() && !bias.is_there()) return;
        const DType dtype = dtype_of(weight.is_there() ? weight : bias);
        index = static_cast<int>(dtype);
        if (!weight.is_there()) this->weight = filled(x.last_size(), dtype, true);
        if (!bias.is_there()) this->bias = filled(x.last_size(), dtype, false);
    }

    const void* weight;
    const void* bias;
    int index;

private:
    const void* filled(int64_t n, DType dtype, bool ones) {
        const auto size = static_cast<size_t>(element_size(dtype));
        made_.resize(static_cast<size_t>(n) * size);
        if (!ones) return made_.data();
        // The upper bits of 1.0; all others are zero.
        const uint16_t upper = dtype == DType::float64   ? 0x3ff0
                               : dtype == DType::float16 ? 0x3c00
                                                         : 0x3f80;
        for (size_t i = 0; i < made_.size(); i += size)
            std::memcpy(made_.data() + i + size - 2, &upper, 2);
        return made_.data();
    }

    std::vector<char> made_;
};

void plan(const char* name, const Inputs& in, Plan& plan) {
    const View& x = in.tensors[0];
    const DType dtype = check(name, x, in.tensors[1], in.tensors[2]);
    // As LibTorch's: contiguous, whatever x is.
    plan.order = Order::identity(x.dims);
    plan.add(x, dtype);
}

void compute(const Inputs& in, const Plan& plan, void* const* results, ParallelFor parallel) {
    const View& x = in.tensors[0];
    const int64_t elements = x.elements();
    if (elements == 0) return;
    const Affine affine(x, in.tensors[1], in.tensors[2]);
    const double eps = in.numbers[0];
    const auto row = row_functions().layer_norm[static_cast<int>(dtype_of(x))][affine.index];
    const Result& result = plan.results[0];
    prefer_huge_pages(results[0], elements * element_size(result.dtype));
    const RowShape<2> shape(x.sizes, plan.order, {placed(x), placed(result, results[0])}, false);
    for_each_row(shape, parallel, [&](char* const* at, char* const* next) {
        row(at[0], next[0], affine.weight, affine.bias, at[1], shape.n, eps);
    });
}

void plan_add(const char* name, const Inputs& in, Plan& plan) {
    const View &x = in.tensors[0], &residual = in.tensors[1];
    same_kind(name, "x", x, "residual", residual);
    const DType dtype = check(name, x, in.tensors[2], in.tensors[3]);
    plan.order = Order::identity(x.dims);
    plan.add(x, dtype);
    plan.order = Order::keeping_rows(x);
    plan.add(x, dtype);
}

void compute_add(const Inputs& in, const Plan& plan, void* const* results, ParallelFor parallel) {
    const View &x = in.tensors[0], &residual = in.tensors[1];
    const int64_t elements = x.elements();
    if (elements == 0) return;
    const Affine affine(x, in.tensors[2], in.tensors[3]);
    const double eps = in.numbers[0];
    const int dtype = static_cast<int>(dtype_of(x));
    const auto row = row_functions().layer_norm[dtype][affine.index];
    const auto add = row_functions().add[dtype];
    for (int i = 0; i < 2; ++i) prefer_huge_pages(results[i], elements * element_size(dtype_of(x)));
    const RowShape<4> shape(x.sizes, plan.order,
                            {placed(x), placed(residual), placed(plan.results[0], results[0]),
                             placed(plan.results[1], results[1])},
                            false);
    for_each_row(shape, parallel, [&](char* const* at, char* const* next) {
        add(at[0], at[1], at[3], shape.n);
        row(at[3], next[0], affine.weight, affine.bias, at[2], shape.n, eps);
    });
}

// A bias affects only its own gradient, which is computed with that of the weight.
void plan_backward(const char* name, const Inputs& in, Plan& plan) {
    const View &grad = in.tensors[0], &x = in.tensors[1], &weight = in.tensors[2];
    check_gradient(name, grad, x, check(name, x, weight, View()));
    plan.order = Order::keeping_rows(x);
    plan.add(x, dtype_of(x));
    const int64_t size = weight.is_there() ? x.last_size() : 0;
    const DType dtype = dtype_of(weight.is_there() ? weight : x);
    plan.add_row(size, dtype);
    plan.add_row(size, dtype);
}

void compute_backward(const Inputs& in, const Plan& plan, void* const* results,
                      ParallelFor parallel) {
    const View &grad = in.tensors[0], &x = in.tensors[1], &weight = in.tensors[2];
    const RowFunctions& functions = row_functions();
    const Result& result = plan.results[0];
    const int index = weight.is_there() ? static_cast<int>(dtype_of(weight)) : no_weight;
    prefer_huge_pages(results[0], x.elements() * element_size(result.dtype));
    const RowShape<3> shape(x.sizes, plan.order,
                            {placed(grad), placed(x), placed(result, results[0])}, false);
    compute_norm_gradients(
        {functions.layer_norm_backward[static_cast<int>(dtype_of(x))][index],
         functions.store_sums[static_cast<int>(plan.results[1].dtype)], weight.data, in.numbers[0],
         0, weight.is_there() ? results[1] : nullptr, weight.is_there() ? results[2] : nullptr},
        shape, parallel);
}

}  // namespace

OperatorList layer_norm_operators() {
    static constexpr Operator all[] = {
        {"layer_norm",
         "layer_norm(Tensor x, Tensor? weight, Tensor? bias, float eps=1e-05, *, int grain=0, int "
         "reading=0) -> Tensor",
         "toofgr", plan, compute},
        {"add_layer_norm",
         "add_layer_norm(Tensor x, Tensor residual, Tensor? weight, Tensor? bias, float eps=1e-05, "
         "*, int grain=0, int reading=0) -> (Tensor, Tensor)",
         "ttoofgr", plan_add, compute_add},
        {"layer_norm_backward",
         "layer_norm_backward(Tensor grad, Tensor x, Tensor? weight, float eps=1e-05) -> (Tensor, "
         "Tensor, Tensor)",
         "ttof", plan_backward, compute_backward},
    };
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack
