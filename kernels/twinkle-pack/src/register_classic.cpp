// Registers the operators in LibTorch 2.6 to 2.9, whose stable ABI is not complete yet.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/linear.h>
#include <torch/library.h>

#include <string>

#include "operator.h"
#include "operators/linear_prepack.h"

namespace {

using twinkle_pack::Inputs;
using twinkle_pack::Operator;
using twinkle_pack::Plan;
using twinkle_pack::View;

View view_of(const at::Tensor& tensor) {
    return {tensor.is_meta() ? nullptr : tensor.const_data_ptr(),
            static_cast<int>(tensor.scalar_type()), tensor.dim(), tensor.sizes().data(),
            tensor.strides().data()};
}

at::Tensor readable(const at::Tensor& tensor, const Plan& plan) {
    const View strided = view_of(tensor);
    if (!twinkle_pack::must_copy(strided, plan)) return tensor;
    int64_t strides[twinkle_pack::most_dims];
    twinkle_pack::dense_strides(strided, plan, strides);
    return at::empty_strided(tensor.sizes(), {strides, static_cast<size_t>(tensor.dim())},
                             tensor.options())
        .copy_(tensor);
}

void parallel(int64_t end, int64_t grain, void (*body)(int64_t, int64_t, void*), void* context) {
    at::parallel_for(0, end, grain, [&](int64_t from, int64_t to) { body(from, to, context); });
}

struct Arguments {
    at::Tensor tensors[twinkle_pack::most_tensors];
    Inputs inputs;

    Arguments(const Operator& op, c10::ArrayRef<c10::IValue> values) {
        int tensor = 0, number = 0, at = 0;
        for (const char* kind = op.arguments; *kind; ++kind, ++at) switch (*kind) {
                case 't':
                case 'o':
                    if (values[at].isTensor()) tensors[tensor] = values[at].toTensor();
                    ++tensor;
                    break;
                case 'f': inputs.numbers[number++] = values[at].toDouble(); break;
                case 'w': inputs.config.way = values[at].toInt(); break;
                case 'g': inputs.config.grain = values[at].toInt(); break;
                case 'r': inputs.config.reading = values[at].toInt(); break;
                case 'i': inputs.numbers[number++] = static_cast<double>(values[at].toInt()); break;
                default: inputs.numbers[number++] = values[at].toBool();
            }
        view();
        for (const at::Tensor& other : tensors)
            TORCH_CHECK(!other.defined() || other.device() == tensors[0].device(),
                        "twinkle-pack: ", op.name, ": the tensors are on different devices, ",
                        tensors[0].device(), " and ", other.device());
    }

    void make_readable(const Plan& plan) {
        for (int i = 0; i < twinkle_pack::most_tensors; ++i)
            if (tensors[i].defined() && !plan.is_read_in_place(i))
                tensors[i] = readable(tensors[i], plan);
        view();
    }

private:
    void view() {
        for (int i = 0; i < twinkle_pack::most_tensors; ++i)
            if (tensors[i].defined()) inputs.tensors[i] = view_of(tensors[i]);
    }
};

void call(const Operator& op, size_t count, c10::Stack& stack);

// As PyTorch has it.
at::Tensor plain(const at::Tensor& weight) {
    if (!twinkle_pack::is_in_panels(view_of(weight))) return weight;
    const twinkle_pack::PlainOrder order(view_of(weight));
    return weight
        .as_strided({order.sizes, twinkle_pack::panel_dims},
                    {order.strides, twinkle_pack::panel_dims})
        .reshape({order.sizes[0] * order.sizes[1], order.sizes[2] * order.sizes[3]});
}

// What LibTorch computes instead.
void compose(const Operator& op, const Arguments& arguments, c10::Stack& stack) {
    const auto& tensors = arguments.tensors;
    const int products = op.composition.products;
    if (op.composition.weight) {
        stack.insert(stack.end(), {tensors[0], tensors[1], tensors[2]});
        call(twinkle_pack::find_operator(op.composition.weight), 3, stack);
        const at::Tensor weight = torch::jit::pop(stack).toTensor();
        const auto bias = tensors[3].defined() ? std::optional(tensors[3]) : std::nullopt;
        stack.emplace_back(at::linear(tensors[0], weight, bias));
        return;
    }
    for (int i = 0; i < products; ++i) {
        const at::Tensor& bias = tensors[2 + 2 * i];
        stack.emplace_back(at::linear(tensors[0], plain(tensors[1 + 2 * i]),
                                      bias.defined() ? std::optional(bias) : std::nullopt));
    }
    if (!op.composition.then) return;
    for (int i = 0; i < 2; ++i)
        stack.emplace_back(int64_t{0});  // what follows has no configuration
    call(twinkle_pack::find_operator(op.composition.then), static_cast<size_t>(products) + 2,
         stack);
}

// The meta device needs only shape and dtype.
void call(const Operator& op, size_t count, c10::Stack& stack) {
    Arguments arguments(op, torch::jit::last(stack, count));
    torch::jit::drop(stack, count);
    if (op.may_decline && (arguments.tensors[0].is_meta() || !op.serves(arguments.inputs))) {
        stack.emplace_back();
        return;
    }
    Plan plan;
    op.plan(op.name, arguments.inputs, plan);
    if (!arguments.tensors[0].is_meta() && op.serves && !op.serves(arguments.inputs))
        return compose(op, arguments, stack);
    at::Tensor results[twinkle_pack::most_results];
    void* data[twinkle_pack::most_results] = {};
    const bool meta = arguments.tensors[0].is_meta();
    for (int i = 0; i < plan.result_count; ++i) {
        const auto& result = plan.results[i];
        const auto dtype = static_cast<at::ScalarType>(twinkle_pack::scalar_type_of(result.dtype));
        const auto dims = static_cast<size_t>(result.dims);
        results[i] = at::empty_strided({result.sizes, dims}, {result.strides, dims},
                                       arguments.tensors[0].options().dtype(dtype));
        if (!meta) data[i] = results[i].mutable_data_ptr();
    }
    if (!meta) {
        arguments.make_readable(plan);
        op.compute(arguments.inputs, plan, data,
                   {parallel, at::get_num_threads(), arguments.inputs.config.grain});
    }
    for (int i = 0; i < plan.result_count; ++i) stack.emplace_back(std::move(results[i]));
}

void boxed(const c10::OperatorHandle& handle, c10::Stack* stack) {
    const std::string& name = handle.schema().name();
    call(twinkle_pack::find_operator(name.c_str() + name.find("::") + 2),
         handle.schema().arguments().size(), *stack);
}

void implement_all(torch::Library& library) {
    for (int i = 0; i < twinkle_pack::operator_count; ++i)
        library.impl(twinkle_pack::operators()[i].name,
                     torch::CppFunction::makeFromBoxedFunction<&boxed>());
}

}  // namespace

// Macros of our own, so that the namespace is expanded before it becomes a string.
#define TWINKLE_PACK_LIBRARY(ns, m) TORCH_LIBRARY(ns, m)
#define TWINKLE_PACK_LIBRARY_IMPL(ns, key, m) TORCH_LIBRARY_IMPL(ns, key, m)

TWINKLE_PACK_LIBRARY(TWINKLE_PACK_ID, library) {
    for (int i = 0; i < twinkle_pack::operator_count; ++i) {
        const Operator& op = twinkle_pack::operators()[i];
        library.def(op.schema);
    }
}

TWINKLE_PACK_LIBRARY_IMPL(TWINKLE_PACK_ID, CPU, library) {
    implement_all(library);
}

TWINKLE_PACK_LIBRARY_IMPL(TWINKLE_PACK_ID, Meta, library) {
    implement_all(library);
}
