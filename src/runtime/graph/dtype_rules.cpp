#include "runtime/graph/dtype_rules.h"

#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using Names = std::set<std::string_view>;

bool is_in_place(std::string_view op) {
    return op.ends_with('_') && !op.ends_with("__");
}

}  // namespace

std::vector<std::size_t> operands_of_one_dtype(std::string_view op) {
    static const std::map<std::string_view, std::vector<std::size_t>> known = {
        {"linear", {0, 1, 2}},
        {"matmul", {0, 1}},
        {"mm", {0, 1}},
        {"bmm", {0, 1}},
        {"mv", {0, 1}},
        {"dot", {0, 1}},
        {"addmm", {0, 1, 2}},
        {"addmv", {0, 1, 2}},
        {"addbmm", {0, 1, 2}},
        {"baddbmm", {0, 1, 2}},
        {"_grouped_mm", {0, 1}},
        {"einsum", {1}},
        {"bilinear", {0, 1, 2, 3}},
        {"conv1d", {0, 1, 2}},
        {"conv2d", {0, 1, 2}},
        {"conv3d", {0, 1, 2}},
        {"conv_transpose1d", {0, 1, 2}},
        {"conv_transpose2d", {0, 1, 2}},
        {"conv_transpose3d", {0, 1, 2}},
        {"convolution", {0, 1, 2}},
        {"_convolution", {0, 1, 2}},
        {"layer_norm", {0, 2, 3}},
        {"group_norm", {0, 2, 3}},
        {"rms_norm", {0, 2}},
        {"prelu", {0, 1}},
        {"scaled_dot_product_attention", {0, 1, 2, 3}},
        {"index_put", {0, 2}},
        {"index_put_", {0, 2}},
        {"scatter", {0, 3}},
        {"scatter_", {0, 3}},
        {"scatter_add", {0, 3}},
        {"scatter_add_", {0, 3}},
        {"scatter_reduce", {0, 3}},
        {"scatter_reduce_", {0, 3}},
        {"index_add", {0, 3}},
        {"index_add_", {0, 3}},
        {"index_copy", {0, 3}},
        {"index_copy_", {0, 3}},
        {"index_reduce", {0, 3}},
        {"index_reduce_", {0, 3}},
        {"masked_scatter", {0, 2}},
        {"masked_scatter_", {0, 2}},
    };
    const auto found = known.find(op);
    return found == known.end() ? std::vector<std::size_t>{} : found->second;
}

bool passes_on(std::string_view op) {
    static const Names names = {"view",
                                "reshape",
                                "transpose",
                                "permute",
                                "slice",
                                "select",
                                "unsqueeze",
                                "squeeze",
                                "expand",
                                "expand_as",
                                "contiguous",
                                "clone",
                                "detach",
                                "flatten",
                                "t",
                                "movedim",
                                "swapaxes",
                                "repeat",
                                "view_as",
                                "reshape_as",
                                "unflatten",
                                "dropout",
                                "alias",
                                "narrow",
                                "chunk",
                                "split",
                                "unbind",
                                "split_with_sizes",
                                "roll",
                                "flip",
                                "repeat_interleave",
                                "feature_dropout",
                                "numpy_T",
                                "tile",
                                "diagonal",
                                "unfold",
                                "pad",
                                "constant_pad_nd",
                                "lift_fresh",
                                "tensor_split"};
    return names.contains(op);
}

bool gives_booleans(std::string_view op) {
    static const Names names = {"eq",    "ne",          "lt",          "le",         "gt",
                                "ge",    "logical_not", "logical_and", "logical_or", "logical_xor",
                                "isnan", "isinf",       "isfinite",    "isin",       "any",
                                "all",   "isclose",     "isneginf",    "isposinf"};
    return names.contains(op);
}

bool gives_indices(std::string_view op) {
    static const Names names = {"argmax",    "argmin",       "argsort",
                                "bucketize", "searchsorted", "nonzero",
                                "bincount",  "multinomial",  "count_nonzero"};
    return names.contains(op);
}

bool gives_dtype_of_first(std::string_view op) {
    static const Names names = {"embedding",   "index",         "index_select",  "gather",
                                "masked_fill", "masked_select", "take",          "masked_scatter",
                                "fill",        "tril",          "triu",          "clamp_min",
                                "clamp_max",   "diff",          "take_along_dim"};
    return names.contains(op) || passes_on(op) || is_in_place(op) ||
           !operands_of_one_dtype(op).empty();
}

bool float_scalar_among(const jit::Node* node) {
    return std::any_of(node->inputs().begin(), node->inputs().end(), [](const jit::Value* input) {
        return input->type()->kind() == c10::TypeKind::FloatType;
    });
}

bool gives_floats_of_integers(std::string_view op) {
    static const Names names = {
        "div",     "true_divide", "sqrt", "rsqrt", "exp",  "log",        "log2", "log1p",
        "sin",     "cos",         "tan",  "tanh",  "atan", "sigmoid",    "erf",  "expm1",
        "softmax", "log_softmax", "mean", "std",   "var",  "reciprocal", "norm"};
    return names.contains(op);
}

bool makes_tensors(std::string_view op) {
    static const Names names = {"arange", "zeros", "ones",   "full",     "empty",        "rand",
                                "randn",  "eye",   "tensor", "linspace", "scalar_tensor"};
    return names.contains(op);
}

bool makes_default_floats(const jit::Node* node) {
    const std::string_view op = node->kind().toUnqualString();
    if (op == "arange") {
        return float_scalar_among(node);
    }
    if (op != "full" && op != "tensor" && op != "scalar_tensor") {
        return makes_tensors(op);
    }
    c10::TypePtr type = node->input(op == "full" ? 1 : 0)->type();
    while (const auto list = type->cast<c10::ListType>()) {
        type = list->getElementType();
    }
    return type->kind() != c10::TypeKind::IntType && type->kind() != c10::TypeKind::BoolType;
}

bool hands_on(const jit::Node* user) {
    if (!user->kind().is_aten()) {
        return true;
    }
    const std::string_view op = user->kind().toUnqualString();
    return passes_on(op) || !operands_of_one_dtype(op).empty();
}

std::optional<std::size_t> argument_index(const jit::Node* node, std::string_view name) {
    const auto* schema = node->maybeSchema();
    if (schema == nullptr) {
        return std::nullopt;
    }
    const auto& arguments = schema->arguments();
    const auto found = std::find_if(arguments.begin(), arguments.end(),
                                    [&](const auto& one) { return one.name() == name; });
    const auto index = static_cast<std::size_t>(found - arguments.begin());
    return found == arguments.end() || index >= node->inputs().size() ? std::nullopt
                                                                      : std::optional(index);
}

std::optional<at::ScalarType> dtype_constant(const jit::Node* node, std::size_t input) {
    const auto constant = jit::toIValue(node->input(input));
    if (!constant || !constant->isInt() || constant->toInt() < 0 ||
        constant->toInt() >= static_cast<std::int64_t>(at::ScalarType::NumOptions)) {
        return std::nullopt;
    }
    return static_cast<at::ScalarType>(constant->toInt());
}

bool is_floating(at::ScalarType dtype) {
    return dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf ||
           dtype == at::kBFloat16;
}

}  // namespace twinkle::runtime
