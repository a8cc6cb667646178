#include "runtime/convert/dtype_follower.h"

#include "runtime/graph/dtype_rules.h"
#include "twinkle/error.h"

#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

constexpr std::size_t deepest = 200;
constexpr std::size_t most_visits = 4'000'000;

using Kind = Known::Kind;

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
            known = known_tensor(settings_.to, nullptr);
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
        if (!node->blocks().empty()) {
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
        return known_tensor(settings_.to, known.under, known.single);
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
    return known_tensor(is_floating(dtype) ? settings_.to : dtype, nullptr, tensor.dim() == 0);
}

Known DtypeFollower::constant(const jit::Node* node) const {
    const auto value = jit::toIValue(node->output());
    if (!value) {
        return {};
    }
    if (value->isTensor() && value->toTensor().defined()) {
        const at::Tensor& tensor = value->toTensor();
        // What a trace makes of a Python number has no dimension and keeps its dtype.
        return tensor.dim() == 0 ? known_tensor(tensor.scalar_type(), nullptr, true) : held(tensor);
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

// A call of a method or function, followed where it leads.
Known DtypeFollower::called(const jit::Node* node, const Values& values) {
    auto inputs = inputs_of(node, values);
    if (node->kind() == c10::prim::CallMethod) {
        const auto type = node->input(0)->type()->cast<c10::ClassType>();
        auto* method = type ? type->findMethod(node->s(c10::attr::name)) : nullptr;
        return method != nullptr ? call(*method, inputs) : Known{};
    }
    const auto type = node->input(0)->type()->cast<c10::FunctionType>();
    inputs.erase(inputs.begin());
    return type ? call(*type->function(), inputs) : Known{};
}

// A tuple or list. What a method returns besides its own result is what it was given: who reads it
// reads x, not the x.to(float32) that was the same tensor.
Known DtypeFollower::held_together(const jit::Node* node, const Values& values) {
    Known result{.kind = Kind::several, .elements = inputs_of(node, values)};
    const auto& uses = node->output()->uses();
    const bool returned = node->kind() == c10::prim::TupleConstruct && node->inputs().size() > 1 &&
                          node->owningBlock() == node->owningGraph()->block() && uses.size() == 1 &&
                          uses[0].user == node->owningGraph()->return_node();
    for (std::size_t i = 0; returned && i < result.elements.size(); ++i) {
        Known& one = result.elements[i];
        if (one.cast != nullptr) {
            flow_.read_instead[{node, i}] = one.under;
            one = known_tensor(settings_.to, one.under);
        }
    }
    return result;
}

void DtypeFollower::taken_apart(const jit::Node* node, Values& values) {
    const Known whole = at(node->input(0), node, values);
    const auto element = [&](std::size_t i) {
        return whole.kind == Kind::several && i < whole.elements.size() ? whole.elements[i]
               : whole.kind == Kind::tensor                             ? whole
                                                                        : Known{};
    };
    if (node->kind() == c10::prim::TupleIndex) {
        const auto index = jit::toIValue(node->input(1));
        const bool known = index && index->isInt() && index->toInt() >= 0;
        values[node->output()] =
            known ? element(static_cast<std::size_t>(index->toInt())) : Known{};
        return;
    }
    for (std::size_t i = 0; i < node->outputs().size(); ++i) {
        values[node->output(i)] = element(i);
    }
}

void DtypeFollower::primitive(const jit::Node* node, Values& values) {
    const auto kind = node->kind();
    Known result;
    if (kind == c10::prim::Constant) {
        result = constant(node);
    } else if (kind == c10::prim::GetAttr) {
        result = attribute(values[node->input(0)], node->s(c10::attr::name));
    } else if (kind == c10::prim::CallMethod || kind == c10::prim::CallFunction) {
        result = called(node, values);
    } else if (kind == c10::prim::TupleConstruct || kind == c10::prim::ListConstruct) {
        result = held_together(node, values);
    } else if (kind == c10::prim::TupleUnpack || kind == c10::prim::ListUnpack ||
               kind == c10::prim::TupleIndex) {
        return taken_apart(node, values);
    } else if (kind == c10::prim::NumToTensor) {
        const bool whole = node->input(0)->type()->kind() != c10::TypeKind::FloatType;
        result = known_tensor(whole ? at::kLong : at::kDouble, nullptr, true);
    } else if (kind == c10::prim::dtype) {
        if (const Known of = at(node->input(0), node, values); of.dtype) {
            result = {.kind = Kind::number, .object = static_cast<std::int64_t>(*of.dtype)};
        }
    } else if (!node->outputs().empty() && node->inputs().size() == 1) {
        result = at(node->input(0), node, values);  // unchecked_cast, annotations
    }
    for (const jit::Value* output : node->outputs()) {
        values[output] = result;
    }
}

}  // namespace twinkle::runtime
