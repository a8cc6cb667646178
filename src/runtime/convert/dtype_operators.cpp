// The part of following dtypes that knows LibTorch's own operators.

#include "runtime/convert/dtype_follower.h"

#include "runtime/graph/dtype_rules.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using Kind = Known::Kind;

bool reduces_all(const jit::Node* node) {
    const auto dim = argument_index(node, "dim");
    static const std::set<std::string_view> reductions = {"sum", "mean", "prod", "max",
                                                          "min", "std",  "var",  "norm"};
    return reductions.contains(node->kind().toUnqualString()) &&
           (!dim || node->input(*dim)->type()->kind() == c10::TypeKind::NoneType) &&
           node->inputs().size() < 4;
}

}  // namespace

DtypeMeaning DtypeFollower::meaning(const jit::Node* node, std::size_t input, const Known& first) {
    const Place place{node, input};
    const bool cast = node->kind() == c10::aten::to;
    const bool again = cast && first.kind == Kind::tensor && first.dtype == at::kFloat;
    if (const auto pinned = pinned_.find(place); pinned != pinned_.end()) {
        flow_.cost += again && pinned->second == DtypeMeaning::literal ? 1 : 0;
        return flow_.constants[place] = pinned->second;
    }
    if (const auto known = flow_.constants.find(place); known != flow_.constants.end()) {
        return known->second;
    }
    // `.to(device)` names the dtype, too, that the tensor has.
    const bool follows = cast && argument_index(node, "layout");
    const bool back = follows ? first.dtype == settings_.to : again;
    return flow_.constants[place] = back ? DtypeMeaning::weights : DtypeMeaning::literal;
}

// What an argument "dtype" says; none: nothing, or it is not known.
std::optional<at::ScalarType> DtypeFollower::asked_dtype(const jit::Node* node, Known& first) {
    const auto index = argument_index(node, "dtype");
    if (!index) {
        return std::nullopt;
    }
    const auto constant = dtype_constant(node, *index);
    if (!constant || !is_floating(*constant)) {
        return constant;
    }
    const Place place{node, *index};
    if (*constant != at::kFloat) {
        const bool weights = settings_.from.contains(*constant);
        flow_.constants[place] = weights ? DtypeMeaning::weights : DtypeMeaning::literal;
        return weights ? settings_.to : *constant;
    }
    if (!settings_.ambiguous()) {
        flow_.constants[place] = DtypeMeaning::literal;
        return constant;
    }
    return meaning(node, *index, first) == DtypeMeaning::weights ? settings_.to : at::kFloat;
}

Known DtypeFollower::cast(const jit::Node* node, Values& values) {
    Known first = at(node->input(0), node, values);
    const auto other = argument_index(node, "other");
    const jit::Value* output = node->output();
    if (other) {
        const Known like = at(node->input(*other), node, values);
        if (like.cast != nullptr) {  // nobody asks for the dtype that he has just asked for
            flow_.read_instead[{node, *other}] = like.under;
            return known_tensor(settings_.to, output, first.single);
        }
        return known_tensor(like.dtype, output, first.single);
    }
    const auto asked = asked_dtype(node, first);
    const auto index = argument_index(node, "dtype");
    if (!asked && index && node->input(*index)->type()->kind() != c10::TypeKind::NoneType) {
        const Known given = at(node->input(*index), node, values);
        const bool known = given.kind == Kind::number && given.object.isInt();
        return known_tensor(
            known ? std::optional(static_cast<at::ScalarType>(given.object.toInt())) : std::nullopt,
            output, first.single);
    }
    Known result = known_tensor(asked ? asked : first.dtype, output, first.single);
    result.assumed = !asked && first.assumed;
    if (first.dtype == result.dtype) {
        result.made = first.made;
    } else if (first.dtype == settings_.to && result.dtype == at::kFloat && !first.assumed) {
        result.cast = node;
        result.under = node->input(0);
    }
    return result;
}

// Operators that want one dtype: the dtype that all agree on, or a conflict.
std::optional<at::ScalarType> DtypeFollower::agreed(const jit::Node* node,
                                                    const std::vector<Known>& inputs) {
    std::vector<const Known*> operands;
    for (const std::size_t index : operands_of_one_dtype(node->kind().toUnqualString())) {
        if (index < inputs.size()) {
            collect_tensors(inputs[index], operands);
        }
    }
    std::optional<at::ScalarType> result;
    std::set<at::ScalarType> dtypes;
    for (const Known* one : operands) {
        if (one->dtype && is_floating(*one->dtype)) {
            dtypes.insert(*one->dtype);
        }
    }
    if (dtypes.size() == 1) {
        return *dtypes.begin();
    }
    if (dtypes.size() > 1) {
        const jit::Value* culprit = nullptr;
        for (const Known* one : operands) {
            if (one->dtype == at::kFloat && dtypes.contains(settings_.to)) {
                culprit = one->made;
            }
        }
        const auto name = names_.find(node->owningGraph());
        flow_.conflicts[node] = {std::string(node->kind().toUnqualString()) + " in " +
                                     (name != names_.end() ? name->second : "a function"),
                                 culprit};
        return settings_.to;
    }
    return std::nullopt;
}

Known DtypeFollower::computed(const jit::Node* node, std::string_view op,
                              const std::vector<Known>& inputs) const {
    std::vector<const Known*> tensors;
    for (const Known& input : inputs) {
        collect_tensors(input, tensors);
    }
    const jit::Value* output = node->output(0);
    if (op == "where" && tensors.size() == 3) {
        tensors.erase(tensors.begin());
    }
    if (gives_booleans(op)) {
        return known_tensor(at::kBool, output);
    }
    if (gives_indices(op)) {
        return known_tensor(at::kLong, output);
    }
    if (tensors.empty()) {
        return known_tensor(std::nullopt, output);
    }
    if (gives_dtype_of_first(op) || op.ends_with("_like") || op.starts_with("new_")) {
        Known first = *tensors.front();
        first.kind = Kind::tensor;
        first.single = first.single && op != "repeat" && op != "expand";
        if (!passes_on(op)) {
            first.made = output;
        }
        first.cast = nullptr;
        return first;
    }
    const auto dtype = promoted(tensors, gives_floats_of_integers(op) || float_scalar_among(node));
    const bool single =
        std::all_of(tensors.begin(), tensors.end(), [](const Known* one) { return one->single; });
    const bool summed =
        (op == "sum" || op == "cumsum" || op == "prod") && dtype && is_whole(*dtype);
    Known result = known_tensor(summed ? std::optional(at::kLong) : dtype, output,
                                single || reduces_all(node));
    result.assumed = std::all_of(tensors.begin(), tensors.end(), [&](const Known* one) {
        return one->assumed || one->dtype != settings_.to;
    });
    return result;
}

void DtypeFollower::tensor_operator(const jit::Node* node, Values& values) {
    if (node->outputs().empty()) {
        return;
    }
    const bool known_operator = node->kind().is_aten();
    const std::string_view op = node->kind().toUnqualString();
    Known result;
    if (node->kind() == c10::aten::to || op == "type_as") {
        result = cast(node, values);
    } else if (known_operator) {
        const auto inputs = inputs_of(node, values);
        Known first = inputs.empty() ? Known{} : inputs[0];
        const auto asked = asked_dtype(node, first);
        result = computed(node, op, inputs);
        if (asked) {
            result.dtype = asked;
            result.made = node->output(0);
        } else if (makes_tensors(op)) {
            result =
                known_tensor(makes_default_floats(node) ? at::kFloat : at::kLong, node->output(0));
        }
        if (const auto one = agreed(node, inputs)) {
            result = known_tensor(one, node->output(0));
        }
    } else {
        // An operator of a kernel: what it gives is most often like what it takes.
        const Known first = at(node->input(0), node, values);
        result = known_tensor(first.dtype, node->output(0));
    }
    if (result.dtype == settings_.to) {
        flow_.computed_in_new.insert(node);
    }
    for (std::size_t i = 0; i < node->outputs().size(); ++i) {
        const jit::Value* output = node->output(i);
        static const std::set<std::string_view> with_indices = {
            "max", "min", "topk", "sort", "median", "mode", "kthvalue", "cummax", "cummin"};
        const auto list = output->type()->cast<c10::ListType>();
        const bool tensors = is_tensor_type(output) ||
                             (list && list->getElementType()->kind() == c10::TypeKind::TensorType);
        values[output] = !tensors                             ? Known{}
                         : i > 0 && with_indices.contains(op) ? known_tensor(at::kLong, output)
                                                              : result;
    }
}

}  // namespace twinkle::runtime
