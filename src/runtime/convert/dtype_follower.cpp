#include "runtime/convert/dtype_follower.h"

#include "runtime/convert/dtype_rules.h"
#include "twinkle/error.h"

#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

constexpr std::size_t deepest = 200;
constexpr std::size_t most_visits = 4'000'000;

using Kind = Known::Kind;

Known joined(const Known& a, const Known& b) {
    if (a.kind != b.kind || a.elements.size() != b.elements.size()) {
        return {};
    }
    Known result = a;
    if (a.dtype != b.dtype) {
        result.dtype.reset();
    }
    result.single = a.single && b.single;
    result.assumed = a.assumed || b.assumed;
    result.made = a.made == b.made ? a.made : nullptr;
    result.cast = nullptr;
    for (std::size_t i = 0; i < a.elements.size(); ++i) {
        result.elements[i] = joined(a.elements[i], b.elements[i]);
    }
    return result;
}

Known tensor_of(std::optional<at::ScalarType> dtype, const jit::Value* made, bool single = false) {
    return {.kind = Kind::tensor, .dtype = dtype, .single = single, .made = made};
}

bool is_tensor_type(const jit::Value* value) {
    return value->type()->kind() == c10::TypeKind::TensorType;
}

int category(at::ScalarType dtype) {
    return dtype == at::kBool ? 0 : at::isIntegralType(dtype, false) ? 1 : 2;
}

// As LibTorch promotes; tensors without dimensions count where they are of a higher category.
// None: something is not known that could decide.
std::optional<at::ScalarType> promoted(const std::vector<const Known*>& tensors, bool floats) {
    std::optional<at::ScalarType> result;
    std::optional<at::ScalarType> single;
    for (const Known* one : tensors) {
        if (!one->dtype) {
            return std::nullopt;
        }
        auto& into = one->single ? single : result;
        into = into ? at::promote_types(*into, *one->dtype) : *one->dtype;
    }
    if (!result) {
        result = single;
    } else if (single && category(*single) > category(*result)) {
        result = *single;
    }
    const bool whole = result && category(*result) < 2;
    return whole && floats ? std::optional(at::kFloat) : result;
}

void collect(const Known& known, std::vector<const Known*>& tensors) {
    if (known.kind == Kind::tensor) {
        tensors.push_back(&known);
    }
    for (const Known& element : known.elements) {
        collect(element, tensors);
    }
}

bool reduces_all(const jit::Node* node) {
    const auto dim = argument_index(node, "dim");
    static const std::set<std::string_view> reductions = {"sum", "mean", "prod", "max",
                                                          "min", "std",  "var",  "norm"};
    return reductions.contains(node->kind().toUnqualString()) &&
           (!dim || node->input(*dim)->type()->kind() == c10::TypeKind::NoneType) &&
           node->inputs().size() < 4;
}

bool float_scalar_among(const jit::Node* node) {
    return std::any_of(node->inputs().begin(), node->inputs().end(), [](const jit::Value* input) {
        return input->type()->kind() == c10::TypeKind::FloatType;
    });
}

}  // namespace

DtypeFollower::DtypeFollower(const jit::Module& model, const DtypeSettings& settings,
                             const std::map<Place, DtypeMeaning>& pinned,
                             const std::set<const jit::Value*>& rounded,
                             const std::map<const jit::Graph*, std::string>& names,
                             StackReader& stacks)
    : model_(model), settings_(settings), pinned_(pinned), names_(names), stacks_(stacks) {
    flow_.rounded = rounded;
}

DtypeFlow DtypeFollower::follow() {
    const auto follow_methods = [&](const jit::Module& module) {
        for (jit::Function* method : module.type()->methods()) {
            if (!followed_.contains(method)) {
                std::vector<Known> inputs(method->num_inputs());
                if (!inputs.empty()) {
                    inputs[0] = {.kind = Kind::module, .object = module._ivalue()};
                }
                call(*method, inputs);
            }
        }
    };
    // The root's forward first: it knows what the methods inside are called with.
    for (const jit::Module& module : model_.modules()) {
        follow_methods(module);
    }
    return std::move(flow_);
}

Known DtypeFollower::call(jit::Function& function, const std::vector<Known>& inputs) {
    auto* compiled = jit::tryToGraphFunction(function);
    if (compiled == nullptr || depth_ >= deepest) {
        return {};
    }
    followed_.insert(&function);
    const auto graph = compiled->graph();
    Values values;
    for (std::size_t i = 0; i < graph->inputs().size(); ++i) {
        const jit::Value* input = graph->inputs()[i];
        Known& known = values[input];
        known = i < inputs.size() ? inputs[i] : Known{};
        if (known.kind == Kind::unknown && is_tensor_type(input)) {
            known = tensor_of(settings_.to, nullptr);
            known.assumed = true;
        }
    }
    ++depth_;
    block(graph->block(), values);
    --depth_;
    const auto outputs = graph->outputs();
    return outputs.size() == 1 ? at(outputs[0], graph->return_node(), values) : Known{};
}

void DtypeFollower::block(const jit::Block* block, Values& values) {
    for (const jit::Node* node : block->nodes()) {
        if (++visits_ > most_visits) {
            throw Error(ErrorCode::refused, {.what = "the dtypes of this model cannot be followed",
                                             .where = "",
                                             .why = "it has more operations than twinkle looks at",
                                             .hint = "trace it in the dtype that it shall have"});
        }
        if (node->blocks().size() > 0) {
            branches(node, values);
        } else if (node->kind().is_prim() || node->maybeSchema() == nullptr) {
            primitive(node, values);
        } else {
            tensor_operator(node, values);
        }
    }
}

// Both ways of an if, one turn of a loop: what differs is not known behind it.
void DtypeFollower::branches(const jit::Node* node, Values& values) {
    std::vector<Known> results;
    for (const jit::Block* inner : node->blocks()) {
        for (std::size_t i = 0; i < inner->inputs().size(); ++i) {
            Known& known = values[inner->inputs()[i]];
            known = {};
            if (node->kind() == c10::prim::Loop && i > 0 && i + 1 < node->inputs().size()) {
                known = at(node->input(i + 1), node, values);
                known.made = nullptr;
            }
        }
        block(inner, values);
        const std::size_t skipped = node->kind() == c10::prim::Loop ? 1 : 0;
        for (std::size_t i = 0; i + skipped < inner->outputs().size(); ++i) {
            Known one = at(inner->outputs()[i + skipped], inner->return_node(), values);
            if (i >= results.size()) {
                results.push_back(std::move(one));
            } else {
                results[i] = joined(results[i], one);
            }
        }
    }
    for (std::size_t i = 0; i < node->outputs().size(); ++i) {
        values[node->output(i)] = i < results.size() ? results[i] : Known{};
    }
}

Known DtypeFollower::at(const jit::Value* value, const jit::Node* user, const Values& values) {
    const auto found = values.find(value);
    if (found == values.end()) {
        return {};
    }
    Known known = found->second;
    if (known.cast != nullptr && outside(user, known.cast)) {
        for (std::size_t i = 0; i < user->inputs().size(); ++i) {
            if (user->input(i) == value) {
                flow_.read_instead[{user, i}] = known.under;
            }
        }
        return tensor_of(settings_.to, known.under, known.single);
    }
    if (flow_.rounded.contains(value) && hands_on(user)) {
        known.dtype = settings_.to;
        known.cast = nullptr;
    }
    return known;
}

// Whether a node was traced outside of the call of the Python function that made a cast: what it
// reads is what was cast, which was the same tensor then.
bool DtypeFollower::outside(const jit::Node* user, const jit::Node* cast) {
    const auto& inner = stacks_.stack_of(cast);
    const auto& frames = stacks_.stack_of(user);
    if (inner.empty() || frames.empty() || user->owningGraph() != cast->owningGraph()) {
        return false;
    }
    if (frames.size() < inner.size()) {
        return true;
    }
    const auto own = frames.end() - static_cast<std::ptrdiff_t>(inner.size());
    const auto same = [](const StackFrame& a, const StackFrame& b) {
        return a.file == b.file && a.function == b.function;
    };
    return !same(*own, inner.front()) || !std::equal(own + 1, frames.end(), inner.begin() + 1,
                                                     [&](const StackFrame& a, const StackFrame& b) {
                                                         return same(a, b) && a.line == b.line;
                                                     });
}

std::vector<Known> DtypeFollower::inputs_of(const jit::Node* node, const Values& values) {
    std::vector<Known> inputs;
    for (const jit::Value* input : node->inputs()) {
        inputs.push_back(at(input, node, values));
    }
    return inputs;
}

// A tensor that the model holds. Those that tell positions or scales have the new dtype here, too:
// so has what PyTorch's own conversion gives.
Known DtypeFollower::held(const at::Tensor& tensor) const {
    if (!tensor.defined()) {
        return {};
    }
    const auto dtype = tensor.scalar_type();
    return tensor_of(is_floating(dtype) ? settings_.to : dtype, nullptr, tensor.dim() == 0);
}

Known DtypeFollower::constant(const jit::Node* node) const {
    const auto value = jit::toIValue(node->output());
    if (!value) {
        return {};
    }
    if (value->isTensor() && value->toTensor().defined()) {
        const at::Tensor& tensor = value->toTensor();
        // What a trace makes of a Python number has no dimension and keeps its dtype.
        return tensor.dim() == 0 ? tensor_of(tensor.scalar_type(), nullptr, true) : held(tensor);
    }
    return {.kind = value->isObject() ? Kind::module : Kind::number, .object = *value};
}

Known DtypeFollower::attribute(const Known& object, const std::string& name) const {
    if (object.kind != Kind::module || !object.object.isObject()) {
        return {};
    }
    const auto slot = object.object.toObject()->type()->findAttributeSlot(name);
    if (!slot) {
        return {};
    }
    const c10::IValue value = object.object.toObject()->getSlot(*slot);
    if (value.isTensor()) {
        return held(value.toTensor());
    }
    return {.kind = value.isObject() ? Kind::module : Kind::number, .object = value};
}

void DtypeFollower::primitive(const jit::Node* node, Values& values) {
    const auto kind = node->kind();
    Known result;
    if (kind == c10::prim::Constant) {
        result = constant(node);
    } else if (kind == c10::prim::GetAttr) {
        result = attribute(values[node->input(0)], node->s(c10::attr::name));
    } else if (kind == c10::prim::CallMethod) {
        const auto inputs = inputs_of(node, values);
        const auto type = node->input(0)->type()->cast<c10::ClassType>();
        auto* method = type ? type->findMethod(node->s(c10::attr::name)) : nullptr;
        result = method != nullptr ? call(*method, inputs) : Known{};
    } else if (kind == c10::prim::CallFunction) {
        const auto type = node->input(0)->type()->cast<c10::FunctionType>();
        auto inputs = inputs_of(node, values);
        inputs.erase(inputs.begin());
        result = type ? call(*type->function(), inputs) : Known{};
    } else if (kind == c10::prim::TupleConstruct || kind == c10::prim::ListConstruct) {
        result = {.kind = Kind::several, .elements = inputs_of(node, values)};
        const bool leaves = node->kind() == c10::prim::TupleConstruct &&
                            node->inputs().size() > 1 &&
                            node->owningBlock() == node->owningGraph()->block() &&
                            node->output()->uses().size() == 1 &&
                            node->output()->uses()[0].user == node->owningGraph()->return_node();
        for (std::size_t i = 0; leaves && i < result.elements.size(); ++i) {
            Known& one = result.elements[i];
            if (one.cast != nullptr) {  // a result besides the module's own: who reads it reads x
                flow_.read_instead[{node, i}] = one.under;
                one = tensor_of(settings_.to, one.under);
            }
        }
    } else if (kind == c10::prim::TupleUnpack || kind == c10::prim::ListUnpack) {
        const Known whole = at(node->input(0), node, values);
        for (std::size_t i = 0; i < node->outputs().size(); ++i) {
            Known& one = values[node->output(i)];
            one = whole.kind == Kind::several && i < whole.elements.size() ? whole.elements[i]
                  : whole.kind == Kind::tensor                             ? whole
                                                                           : Known{};
        }
        return;
    } else if (kind == c10::prim::TupleIndex) {
        const Known whole = at(node->input(0), node, values);
        const auto index = jit::toIValue(node->input(1));
        if (index && index->isInt() && index->toInt() >= 0 &&
            static_cast<std::size_t>(index->toInt()) < whole.elements.size()) {
            result = whole.elements[static_cast<std::size_t>(index->toInt())];
        }
    } else if (kind == c10::prim::NumToTensor) {
        const bool whole = node->input(0)->type()->kind() != c10::TypeKind::FloatType;
        result = tensor_of(whole ? at::kLong : at::kDouble, nullptr, true);
    } else if (kind == c10::prim::dtype) {
        const Known of = at(node->input(0), node, values);
        if (of.dtype) {
            result = {.kind = Kind::number, .object = static_cast<std::int64_t>(*of.dtype)};
        }
    } else if (!node->outputs().empty() && node->inputs().size() == 1) {
        result = at(node->input(0), node, values);  // unchecked_cast, annotations
    }
    for (const jit::Value* output : node->outputs()) {
        values[output] = result;
    }
}

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
            return tensor_of(settings_.to, output, first.single);
        }
        return tensor_of(like.dtype, output, first.single);
    }
    const auto asked = asked_dtype(node, first);
    const auto index = argument_index(node, "dtype");
    if (!asked && index && node->input(*index)->type()->kind() != c10::TypeKind::NoneType) {
        const Known given = at(node->input(*index), node, values);
        const bool known = given.kind == Kind::number && given.object.isInt();
        return tensor_of(
            known ? std::optional(static_cast<at::ScalarType>(given.object.toInt())) : std::nullopt,
            output, first.single);
    }
    Known result = tensor_of(asked ? asked : first.dtype, output, first.single);
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
            collect(inputs[index], operands);
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
        collect(input, tensors);
    }
    const jit::Value* output = node->output(0);
    if (op == "where" && tensors.size() == 3) {
        tensors.erase(tensors.begin());
    }
    if (gives_booleans(op)) {
        return tensor_of(at::kBool, output);
    }
    if (gives_indices(op)) {
        return tensor_of(at::kLong, output);
    }
    if (tensors.empty()) {
        return tensor_of(std::nullopt, output);
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
        (op == "sum" || op == "cumsum" || op == "prod") && dtype && category(*dtype) < 2;
    Known result =
        tensor_of(summed ? std::optional(at::kLong) : dtype, output, single || reduces_all(node));
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
            const bool counts = op == "arange" && !float_scalar_among(node);
            result = tensor_of(counts ? at::kLong : at::kFloat, node->output(0));
        }
        if (const auto one = agreed(node, inputs)) {
            result = tensor_of(one, node->output(0));
        }
    } else {
        // An operator of a kernel: what it gives is most often like what it takes.
        const Known first = at(node->input(0), node, values);
        result = tensor_of(first.dtype, node->output(0));
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
                         : i > 0 && with_indices.contains(op) ? tensor_of(at::kLong, output)
                                                              : result;
    }
}

}  // namespace twinkle::runtime
