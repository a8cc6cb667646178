#include "runtime/patterns/flat_rules.h"

#include "runtime/patterns/in_place.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <limits>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using View = FlatView;
using Rule = Normal (*)(const jit::Node*, const View&);

const c10::Symbol& mul() {
    static const c10::Symbol op = symbol("aten::mul");
    return op;
}

const c10::Symbol& rsqrt() {
    static const c10::Symbol op = symbol("aten::rsqrt");
    return op;
}

const c10::Symbol& square_root() {
    static const c10::Symbol op = symbol("aten::sqrt");
    return op;
}

Normal plain(const jit::Node* node) {
    Normal normal;
    normal.op = node->kind();
    for (jit::Value* input : const_cast<jit::Node*>(node)->inputs()) {
        normal.inputs.push_back(input);
    }
    return normal;
}

Normal as(const c10::Symbol& op, std::initializer_list<jit::Value*> inputs) {
    Normal normal;
    normal.op = op;
    normal.inputs.append(inputs.begin(), inputs.end());
    return normal;
}

Normal alias(jit::Value* value) {
    Normal normal;
    normal.alias = value;
    return normal;
}

jit::Value* input(const jit::Node* node, std::size_t index) {
    return const_cast<jit::Node*>(node)->input(index);
}

const c10::IValue* constant(const View& view, jit::Value* value) {
    const auto seen = view(value);
    return seen.graph.constant_of(seen.id);
}

std::optional<double> number(const View& view, jit::Value* value) {
    const c10::IValue* held = constant(view, value);
    if (held == nullptr) {
        return std::nullopt;
    }
    return held->isDouble() ? std::optional(held->toDouble())
           : held->isInt()  ? std::optional(static_cast<double>(held->toInt()))
                            : std::nullopt;
}

bool is_false(const View& view, jit::Value* value) {
    const auto seen = view(value);
    return runtime::is_false(seen.graph, seen.id);
}

c10::ScalarType dtype(const View& view, jit::Value* value) {
    const auto seen = view(value);
    return seen.graph.value(seen.id).dtype;
}

const FlatNode* node_of(const View& view, jit::Value* value) {
    const auto seen = view(value);
    return seen.graph.node_of(seen.id);
}

// A size as a tensor and back.
Normal conversion(const jit::Node* node, const View& view) {
    const auto seen = view(input(node, 0));
    const FlatValue& value = seen.graph.value(seen.id);
    const c10::IValue* held = seen.graph.constant_of(seen.id);
    const bool whole =
        held != nullptr ? held->isInt() : value.from->type()->kind() != c10::TypeKind::FloatType;
    const bool to_int = node->kind() == symbol("aten::Int");
    return value.kind == ValueKind::number && (whole || !to_int) ? alias(input(node, 0))
                                                                 : plain(node);
}

Normal same(const jit::Node* node, const View&) {
    return alias(input(node, 0));
}

Normal contiguous(const jit::Node* node, const View& view) {
    const auto format = number(view, input(node, 1));
    return format && *format == 0 ? alias(input(node, 0)) : plain(node);
}

Normal dropout(const jit::Node* node, const View& view) {
    return node->inputs().size() == 3 &&
                   (is_false(view, input(node, 2)) || number(view, input(node, 1)) == 0.0)
               ? alias(input(node, 0))
               : plain(node);
}

// Sizes are numbers that no operator changes; a trace computes with them as tensors.
Normal arithmetic(const jit::Node* node, const View& view) {
    Normal normal = plain(node);
    if (normal.inputs.size() == 3 && number(view, input(node, 2)) == 1.0) {
        normal.inputs.resize(2);  // alpha
    }
    normal.is_number =
        normal.inputs.size() == 2 &&
        std::all_of(normal.inputs.begin(), normal.inputs.end(), [&](jit::Value* one) {
            const auto seen = view(one);
            return seen.graph.value(seen.id).kind == ValueKind::number;
        });
    static const c10::Symbol of_tensors = symbol("aten::floor_divide");
    static const c10::Symbol of_numbers = symbol("aten::floordiv");
    if (normal.is_number && normal.op == of_tensors) {
        normal.op = of_numbers;
    }
    return normal;
}

Normal size(const jit::Node* node, const View&) {
    Normal normal = plain(node);
    normal.is_number = normal.inputs.size() == 2;  // else a list
    return normal;
}

// Takes None for "from the start" and "to the end", or numbers that say so.
Normal slice(const jit::Node* node, const View& view) {
    Normal normal = plain(node);
    if (node->inputs().size() != 5) {
        return normal;  // of a list
    }
    constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
    const auto is_none = [&](std::size_t i) {
        const c10::IValue* held = constant(view, input(node, i));
        return held != nullptr && held->isNone();
    };
    if (is_none(2)) {
        normal.literals.emplace_back(2, std::int64_t{0});
    }
    if (is_none(3)) {
        normal.literals.emplace_back(3, last);
    }
    const c10::IValue* end = constant(view, input(node, 3));
    const bool to_end = is_none(3) || (end != nullptr && end->isInt() && end->toInt() == last);
    const bool from_start = is_none(2) || number(view, input(node, 2)) == 0.0;
    return from_start && to_end && number(view, input(node, 4)) == 1.0 ? alias(input(node, 0))
                                                                       : normal;
}

// Its dtype says nothing where it is that of its input.
Normal softmax(const jit::Node* node, const View& view) {
    Normal normal = plain(node);
    const auto own = dtype(view, input(node, 0));
    if (node->inputs().size() == 3 && own != c10::ScalarType::Undefined &&
        number(view, input(node, 2)) == static_cast<double>(own)) {
        normal.literals.emplace_back(2, c10::IValue());
    }
    return normal;
}

// Whether an argument of aten::to lets everything but the dtype be as it is.
bool leaves_the_rest(const std::string& name, const View& view, jit::Value* given) {
    const c10::IValue* held = constant(view, given);
    const bool none = held != nullptr && held->isNone();
    if (name == "copy") {
        return is_false(view, given);
    }
    if (name == "layout" || name == "memory_format") {
        return none || number(view, given) == 0.0;
    }
    // Else it is a device, or another tensor with one.
    return none || name == "non_blocking" || name == "pin_memory";
}

Normal cast(const jit::Node* node, const View& view) {
    const auto* schema = node->maybeSchema();
    if (schema == nullptr) {
        return plain(node);
    }
    jit::Value* wanted = nullptr;
    for (std::size_t i = 1; i < node->inputs().size(); ++i) {
        const std::string& name = schema->arguments()[i].name();
        if (name == "dtype") {
            wanted = input(node, i);
        } else if (!leaves_the_rest(name, view, input(node, i))) {
            return plain(node);
        }
    }
    const c10::IValue* held = wanted == nullptr ? nullptr : constant(view, wanted);
    if (wanted == nullptr || (held != nullptr && !held->isInt())) {
        return plain(node);
    }
    if (held != nullptr &&
        held->toInt() == static_cast<std::int64_t>(dtype(view, input(node, 0)))) {
        return alias(input(node, 0));
    }
    return as(cast_op(), {input(node, 0), wanted});
}

// Casts to what another tensor has.
Normal type_as(const jit::Node* node, const View& view) {
    const auto own = dtype(view, input(node, 0));
    const auto other = dtype(view, input(node, 1));
    if (own != c10::ScalarType::Undefined && own == other) {
        return alias(input(node, 0));
    }
    return plain(node);
}

Normal dtype_of(const jit::Node* node, const View& view) {
    const auto known = dtype(view, input(node, 0));
    Normal normal = plain(node);
    if (known != c10::ScalarType::Undefined) {
        normal.constant = static_cast<std::int64_t>(known);
    }
    return normal;
}

Normal square(const jit::Node* node, const View&) {
    return as(mul(), {input(node, 0), input(node, 0)});
}

Normal power(const jit::Node* node, const View& view) {
    const auto exponent = number(view, input(node, 1));
    return exponent == 2.0    ? square(node, view)
           : exponent == -0.5 ? as(rsqrt(), {input(node, 0)})
           : exponent == 0.5  ? as(square_root(), {input(node, 0)})
                              : plain(node);
}

Normal reciprocal(const jit::Node* node, const View& view) {
    const FlatNode* under = node_of(view, input(node, 0));
    if (under == nullptr || under->op != square_root()) {
        return plain(node);
    }
    Normal normal = as(rsqrt(), {input(node, 0)});
    normal.merges_input = true;
    return normal;
}

// Scripting writes 1 / x as reciprocal(x) * 1.
Normal product(const jit::Node* node, const View& view) {
    const FlatNode* factor = node_of(view, input(node, 0));
    static const c10::Symbol inverse = symbol("aten::reciprocal");
    if (factor != nullptr && (factor->op == rsqrt() || factor->op == inverse) &&
        node->inputs().size() == 2 && number(view, input(node, 1)) == 1.0) {
        return alias(input(node, 0));
    }
    return arithmetic(node, view);
}

Normal reversed_difference(const jit::Node* node, const View& view) {
    if (node->inputs().size() == 3 && number(view, input(node, 2)) == 1.0) {
        return as(symbol("aten::sub"), {input(node, 1), input(node, 0)});
    }
    return plain(node);
}

Normal layer_norm(const jit::Node* node, const View&) {
    Normal normal = plain(node);
    normal.inputs.resize(std::min<std::size_t>(normal.inputs.size(), 5));  // without cudnn_enable
    return normal;
}

bool has_elements(const View& view, jit::Value* list, std::size_t count) {
    const auto seen = view(list);
    const c10::IValue* held = seen.graph.constant_of(seen.id);
    if (held != nullptr) {
        return held->isIntList() && held->toIntVector().size() == count;
    }
    const auto parts = seen.graph.value(seen.id).parts;
    return parts != nothing && seen.graph.parts[static_cast<std::size_t>(parts)].size() == count;
}

// What a trace has of each kind of convolution says which one only by its lists.
Normal convolution(const jit::Node* node, const View& view) {
    constexpr std::size_t stride = 3, transposed = 6, groups = 8;
    if (node->inputs().size() <= groups || !is_false(view, input(node, transposed)) ||
        !has_elements(view, input(node, stride), 2)) {
        return plain(node);
    }
    return as(symbol("aten::conv2d"),
              {input(node, 0), input(node, 1), input(node, 2), input(node, stride), input(node, 4),
               input(node, 5), input(node, groups)});
}

// Takes the statistics that it is given: x, weight, bias, mean, variance, epsilon.
Normal batch_norm(const jit::Node* node, const View& view) {
    constexpr std::size_t training = 5, eps = 7;
    if (node->inputs().size() <= eps || !is_false(view, input(node, training))) {
        return plain(node);
    }
    Normal normal = plain(node);
    normal.inputs.resize(training);
    normal.inputs.push_back(input(node, eps));
    return normal;
}

Normal clamp(const jit::Node* node, const View& view) {
    return node->inputs().size() == 3 && number(view, input(node, 1)) == 0.0 &&
                   number(view, input(node, 2)) == 6.0
               ? as(symbol("aten::relu6"), {input(node, 0)})
               : plain(node);
}

Normal element(const jit::Node* node, const View& view) {
    static const c10::Symbol sizes = symbol("aten::size");
    const jit::Node* list = input(node, 0)->node();
    Normal normal = plain(node);
    if (list->kind() == sizes && list->inputs().size() == 1) {
        normal = as(sizes, {input(list, 0), input(node, 1)});
        normal.is_number = true;
        return normal;
    }
    if (const c10::IValue* index = constant(view, input(node, 1));
        index != nullptr && index->isInt()) {
        normal.part = index->toInt();
    }
    return normal;
}

const std::unordered_map<c10::Symbol, Rule>& rules() {
    static const auto& all = *new std::unordered_map<c10::Symbol, Rule>{
        {symbol("prim::NumToTensor"), conversion},
        {symbol("aten::Int"), conversion},
        {symbol("aten::ScalarImplicit"), conversion},
        {symbol("aten::IntImplicit"), conversion},
        {symbol("aten::FloatImplicit"), conversion},
        {symbol("prim::unchecked_cast"), same},
        {symbol("prim::unchecked_unwrap_optional"), same},
        {symbol("aten::alias"), same},
        {symbol("aten::contiguous"), contiguous},
        {symbol("aten::dropout"), dropout},
        {symbol("aten::feature_dropout"), dropout},
        {symbol("aten::to"), cast},
        {symbol("aten::type_as"), type_as},
        {symbol("prim::dtype"), dtype_of},
        {symbol("aten::square"), square},
        {symbol("aten::pow"), power},
        {symbol("aten::reciprocal"), reciprocal},
        {symbol("aten::mul"), product},
        {symbol("aten::add"), arithmetic},
        {symbol("aten::sub"), arithmetic},
        {symbol("aten::floor_divide"), arithmetic},
        {symbol("aten::floordiv"), arithmetic},
        {symbol("aten::size"), size},
        {symbol("aten::slice"), slice},
        {symbol("aten::softmax"), softmax},
        {symbol("aten::rsub"), reversed_difference},
        {symbol("aten::layer_norm"), layer_norm},
        {symbol("aten::_convolution"), convolution},
        {symbol("aten::convolution"), convolution},
        {symbol("aten::batch_norm"), batch_norm},
        {symbol("aten::hardtanh"), clamp},
        {symbol("aten::clamp"), clamp},
        {symbol("aten::__getitem__"), element},
        {symbol("prim::TupleIndex"), element},
    };
    return all;
}

}  // namespace

c10::Symbol cast_op() {
    static const c10::Symbol op = symbol("twinkle_flat::cast");
    return op;
}

c10::Symbol items_op() {
    static const c10::Symbol op = symbol("twinkle_flat::items");
    return op;
}

Normal normal_form(const jit::Node* node, const View& view) {
    const c10::Symbol op = without_writing(node->kind()).value_or(node->kind());
    const auto rule = rules().find(op);
    Normal normal = rule == rules().end() ? plain(node) : rule->second(node, view);
    if (op != node->kind()) {
        if (normal.alias != nullptr || normal.constant || normal.is_number) {
            return plain(node);
        }
        normal.op = normal.op == node->kind() ? op : normal.op;
        normal.is_in_place = true;
    }
    return normal;
}

const FunctionalOperator* functional_operator(const std::string& name) {
    static const auto& all = *new std::unordered_map<std::string, FunctionalOperator>{
        {"torch.nn.functional.silu", {symbol("aten::silu"), {0}, {}, {}, 1}},
        {"torch.nn.functional.relu", {symbol("aten::relu"), {0}, {}, {}, 1}},
        {"torch.nn.functional.relu6", {symbol("aten::relu6"), {0}, {}, {}, 1}},
        {"torch.nn.functional.hardtanh", {symbol("aten::relu6"), {0}, {}, {}, 3, {{1, 0}, {2, 6}}}},
        {"torch.nn.functional.hardswish", {symbol("aten::hardswish"), {0}, {}, {}, 1}},
        {"torch.nn.functional.mish", {symbol("aten::mish"), {0}, {}, {}, 1}},
        {"torch.nn.functional.softmax", {symbol("aten::softmax"), {0, 1, 3}, {}, {1}, {}}},
        {"torch.nn.functional.dropout", {symbol("aten::dropout"), {0, 1, 2}, {3}, {}, {}}},
    };
    const auto found = all.find(name);
    return found == all.end() ? nullptr : &found->second;
}

bool is_false(const FlatGraph& graph, ValueId id) {
    const c10::IValue* held = graph.constant_of(id);
    return held != nullptr &&
           ((held->isBool() && !held->toBool()) || (held->isInt() && held->toInt() == 0));
}

bool is_true(const FlatGraph& graph, ValueId id) {
    const c10::IValue* held = graph.constant_of(id);
    return held != nullptr && held->isBool() && held->toBool();
}

bool is_integer(const FlatGraph& graph, ValueId id) {
    const c10::IValue* held = graph.constant_of(id);
    return held != nullptr && held->isInt();
}

bool is_number(const FlatGraph& graph, ValueId id, double number) {
    const c10::IValue* held = graph.constant_of(id);
    return held != nullptr && ((held->isDouble() && held->toDouble() == number) ||
                               (held->isInt() && static_cast<double>(held->toInt()) == number));
}

std::optional<c10::IValue> as_number(const at::Tensor& tensor) {
    if (tensor.dim() != 0 || tensor.is_meta() || tensor.layout() != at::kStrided) {
        return std::nullopt;
    }
    const auto type = tensor.scalar_type();
    if (c10::isFloatingType(type)) {
        return tensor.item<double>();
    }
    if (type == at::kBool) {
        return tensor.item<bool>();
    }
    return c10::isIntegralType(type, false)
               ? std::optional<c10::IValue>(tensor.item<std::int64_t>())
               : std::nullopt;
}

}  // namespace twinkle::runtime
