#include "runtime/patterns/known_dtypes.h"

#include <c10/core/ScalarType.h>

#include <unordered_set>

namespace twinkle::runtime {

namespace {

using c10::ScalarType;
using Ops = std::unordered_set<c10::Symbol>;

Ops ops(std::initializer_list<const char*> names) {
    Ops all;
    for (const char* name : names) {
        all.insert(c10::Symbol::fromQualString(std::string("aten::") + name));
    }
    return all;
}

// The dtype of their first input, whatever it is.
const Ops& moving() {
    static const auto& all = *new Ops(ops(
        {"view",     "reshape",      "transpose",   "permute", "contiguous", "slice",
         "select",   "unsqueeze",    "squeeze",     "expand",  "expand_as",  "repeat",
         "flatten",  "unflatten",    "t",           "clone",   "detach",     "alias",
         "index",    "index_select", "masked_fill", "neg",     "relu",       "abs",
         "roll",     "flip",         "view_as",     "movedim", "narrow",     "pad",
         "tril",     "triu",         "split",       "chunk",   "unbind",     "repeat_interleave",
         "swapaxes", "square"}));
    return all;
}

// That of their first input, if it is a floating point dtype.
const Ops& floating() {
    static const auto& all = *new Ops(ops({"rsqrt",
                                           "sqrt",
                                           "exp",
                                           "tanh",
                                           "sigmoid",
                                           "silu",
                                           "gelu",
                                           "erf",
                                           "sin",
                                           "cos",
                                           "log",
                                           "reciprocal",
                                           "layer_norm",
                                           "dropout",
                                           "elu",
                                           "clamp",
                                           "leaky_relu",
                                           "hardtanh",
                                           "hardswish",
                                           "mish",
                                           "softplus",
                                           "pow",
                                           "feature_dropout",
                                           "group_norm",
                                           "batch_norm",
                                           "avg_pool2d",
                                           "max_pool2d",
                                           "adaptive_avg_pool2d"}));
    return all;
}

// Their tensors must all have one dtype, which is that of the result.
const Ops& agreeing() {
    static const auto& all =
        *new Ops(ops({"linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "conv1d", "conv2d",
                      "conv3d", "_convolution", "convolution", "scaled_dot_product_attention"}));
    return all;
}

const Ops& elementwise() {
    static const auto& all =
        *new Ops(ops({"add", "sub", "mul", "div", "rsub", "maximum", "minimum"}));
    return all;
}

// Reductions and softmax have a dtype argument of their own.
const Ops& with_dtype() {
    static const auto& all = *new Ops(ops({"softmax", "log_softmax", "mean", "sum", "cumsum"}));
    return all;
}

ScalarType of(const FlatGraph& graph, const FlatInput& input) {
    return graph.value(input.value).dtype;
}

ScalarType if_floating(ScalarType dtype) {
    return dtype != ScalarType::Undefined && c10::isFloatingType(dtype) ? dtype
                                                                        : ScalarType::Undefined;
}

// Numbers do not promote a floating tensor; two tensors only count if they are alike, since one may
// have no dimensions.
ScalarType promoted(const FlatGraph& graph, const FlatNode& node, std::size_t first = 0) {
    ScalarType dtype = ScalarType::Undefined;
    for (std::size_t i = first; i < first + 2; ++i) {
        const FlatValue& value = graph.value(node.inputs[i].value);
        if (value.kind == ValueKind::number) {
            continue;
        }
        const ScalarType own = if_floating(value.dtype);
        if (own == ScalarType::Undefined || (dtype != ScalarType::Undefined && dtype != own)) {
            return ScalarType::Undefined;
        }
        dtype = own;
    }
    return dtype;
}

ScalarType agreed(const FlatGraph& graph, const FlatNode& node) {
    for (const FlatInput& input : node.inputs) {
        const FlatValue& value = graph.value(input.value);
        if (value.kind == ValueKind::tensor && if_floating(value.dtype) != ScalarType::Undefined) {
            return value.dtype;
        }
    }
    return ScalarType::Undefined;
}

ScalarType of_constant(const FlatGraph& graph, const FlatInput& input) {
    const c10::IValue* constant = graph.constant_of(input.value);
    if (constant == nullptr || !constant->isInt() || constant->toInt() < 0 ||
        constant->toInt() >= static_cast<int>(ScalarType::NumOptions)) {
        return ScalarType::Undefined;
    }
    return static_cast<ScalarType>(constant->toInt());
}

}  // namespace

ScalarType known_dtype(const FlatGraph& graph, const FlatNode& node) {
    if (node.inputs.empty()) {
        return ScalarType::Undefined;
    }
    if (node.op == cast_op()) {
        return of_constant(graph, node.inputs[1]);
    }
    if (node.op == items_op() || moving().contains(node.op)) {
        return of(graph, node.inputs[0]);
    }
    static const auto pow = c10::Symbol::fromQualString("aten::pow");
    if (node.op == pow && graph.value(node.inputs[1].value).kind != ValueKind::number) {
        return ScalarType::Undefined;
    }
    if (floating().contains(node.op)) {
        return if_floating(of(graph, node.inputs[0]));
    }
    // Masks are made of these.
    static const auto where = c10::Symbol::fromQualString("aten::where");
    static const auto zeros = c10::Symbol::fromQualString("aten::zeros");
    if (node.op == where && node.inputs.size() == 3) {
        return promoted(graph, node, 1);
    }
    if (node.op == zeros && node.inputs.size() == 5) {
        return of_constant(graph, node.inputs[1]);
    }
    if (elementwise().contains(node.op) && node.inputs.size() >= 2) {
        return promoted(graph, node);
    }
    if (agreeing().contains(node.op)) {
        return agreed(graph, node);
    }
    if (with_dtype().contains(node.op)) {
        const c10::IValue* last = graph.constant_of(node.inputs.back().value);
        return last != nullptr && last->isNone() ? if_floating(of(graph, node.inputs[0]))
                                                 : of_constant(graph, node.inputs.back());
    }
    static const auto embedding = c10::Symbol::fromQualString("aten::embedding");
    static const auto cat = c10::Symbol::fromQualString("aten::cat");
    if (node.op == embedding) {
        return of(graph, node.inputs[0]);
    }
    if (node.op == cat && graph.value(node.inputs[0].value).parts != nothing) {
        const auto& parts =
            graph.parts[static_cast<std::size_t>(graph.value(node.inputs[0].value).parts)];
        ScalarType dtype = parts.empty() ? ScalarType::Undefined : of(graph, parts[0]);
        for (const FlatInput& part : parts) {
            dtype = of(graph, part) == dtype ? dtype : ScalarType::Undefined;
        }
        return dtype;
    }
    return ScalarType::Undefined;
}

}  // namespace twinkle::runtime
