#include "runtime/layers/site_adapter.h"
#include "runtime/graph/format.h"

#include "runtime/graph/graph_values.h"
#include "runtime/graph/graph_walk.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

bool mutates(const jit::Block* block) {
    bool found = false;
    for_each_node(block, [&](const jit::Node* node) {
        const auto* schema = node->maybeSchema();
        found = found || node->kind() == c10::prim::SetAttr ||
                (schema != nullptr && schema->is_mutable());
    });
    return found;
}

// Everything that the outputs need, whole nodes with their blocks.
void mark_needed(jit::Node* node, std::unordered_set<jit::Node*>& needed) {
    std::vector<jit::Node*> work{node};
    while (!work.empty()) {
        jit::Node* current = work.back();
        work.pop_back();
        const std::function<void(jit::Node*)> visit = [&](jit::Node* one) {
            for (jit::Value* input : one->inputs()) {
                jit::Node* producer = input->node();
                while (producer->owningBlock() != nullptr &&
                       producer->owningBlock()->owningNode() != nullptr) {
                    producer = producer->owningBlock()->owningNode();
                }
                if (needed.insert(producer).second) {
                    work.push_back(producer);
                }
            }
            for (jit::Block* block : one->blocks()) {
                for (jit::Node* inner : block->nodes()) {
                    visit(inner);
                }
                visit(block->return_node());
            }
        };
        visit(current);
    }
}

// The layer replaces the forward: calls and checks that only served the old result go too, whatever
// effects dead code elimination would assume of them.
void remove_unneeded(jit::Graph& graph) {
    std::unordered_set<jit::Node*> needed;
    mark_needed(graph.return_node(), needed);
    for (auto it = graph.nodes().rbegin(); it != graph.nodes().rend(); ++it) {
        if (!needed.contains(*it)) {
            it.destroyCurrent();
        }
    }
}

// In a returned tuple, the one element that is more than an input passed on.
void find_element(jit::Graph& graph, Adapter& adapter) {
    const jit::Node* tuple = graph.outputs().at(0)->node();
    if (tuple->kind() != c10::prim::TupleConstruct) {
        return;
    }
    std::vector<std::size_t> computed;
    for (std::size_t i = 0; i < tuple->inputs().size(); ++i) {
        if (!passes_through(tuple->input(i))) {
            computed.push_back(i);
        }
    }
    if (computed.size() != 1) {
        adapter.unclear = fmt::format("{} of its {} values are computed", computed.size(),
                                      tuple->inputs().size());
    } else if (mutates(graph.block())) {
        adapter.unclear = "it writes into its inputs besides";
    } else {
        adapter.element = computed.front();
    }
}

c10::TypePtr type_of(const jit::Graph& graph, std::size_t input) {
    return c10::unshapedType(graph.inputs()[input]->type());
}

// One parameter after the other takes its inputs; nothing unless that uses up all of them.
std::optional<std::vector<AdaptedArgument>> assign(
    const jit::Graph& graph, const std::vector<std::size_t>& inputs,
    const std::vector<const LayerParameter*>& parameters) {
    std::vector<AdaptedArgument> arguments;
    std::size_t next = 0;
    for (const LayerParameter* parameter : parameters) {
        if (next >= inputs.size()) {
            return std::nullopt;
        }
        AdaptedArgument argument{parameter->name, {inputs[next]}, type_of(graph, inputs[next])};
        const bool flattened =
            parameter->tuple && argument.type->isSubtypeOf(*c10::TensorType::get());
        std::vector<c10::TypePtr> elements{argument.type};
        for (std::size_t i = 1; flattened && i < *parameter->tuple; ++i) {
            if (next + i >= inputs.size()) {
                return std::nullopt;
            }
            argument.inputs.push_back(inputs[next + i]);
            elements.push_back(type_of(graph, inputs[next + i]));
        }
        if (flattened) {
            argument.type = c10::TupleType::create(elements);
        }
        next += argument.inputs.size();
        arguments.push_back(std::move(argument));
    }
    return next == inputs.size() ? std::optional(std::move(arguments)) : std::nullopt;
}

std::string plain_name(const jit::Value* input) {
    const std::string name = input->debugName();
    return name.substr(0, name.find('.'));
}

// The parameters that have the names of the inputs, where that is every required one.
std::vector<const LayerParameter*> same_names(const jit::Graph& graph,
                                              const std::vector<std::size_t>& inputs,
                                              const std::vector<LayerParameter>& parameters) {
    std::vector<const LayerParameter*> found;
    for (const LayerParameter& parameter : parameters) {
        const bool given = std::any_of(inputs.begin(), inputs.end(), [&](std::size_t input) {
            return plain_name(graph.inputs()[input]) == parameter.name;
        });
        if (given || !parameter.has_default) {
            found.push_back(&parameter);
        }
    }
    return found;
}

// All parameters, or those that need a value, or those that the inputs name: tracing drops what is
// None, and what of the others it has dropped cannot be told.
std::optional<std::vector<AdaptedArgument>> assign_any(
    const jit::Graph& graph, const std::vector<std::size_t>& inputs,
    const std::vector<LayerParameter>& parameters) {
    std::vector<const LayerParameter*> all;
    std::vector<const LayerParameter*> required;
    for (const LayerParameter& parameter : parameters) {
        all.push_back(&parameter);
        if (!parameter.has_default) {
            required.push_back(&parameter);
        }
    }
    for (const auto& some : {all, required, same_names(graph, inputs, parameters)}) {
        if (auto arguments = assign(graph, inputs, some)) {
            return arguments;
        }
    }
    return std::nullopt;
}

std::string inputs_do_not_fit(std::size_t given, const std::vector<LayerParameter>& parameters) {
    const auto required = static_cast<std::size_t>(
        std::count_if(parameters.begin(), parameters.end(),
                      [](const LayerParameter& one) { return !one.has_default; }));
    const bool within = given >= required && given <= parameters.size();
    return fmt::format("the saved forward takes {} inputs, the layer {}{}", given,
                       required == parameters.size()
                           ? std::to_string(required)
                           : fmt::format("{} to {}", required, parameters.size()),
                       within ? ", and which of them is not clear" : "");
}

}  // namespace

LayerSignature Adapter::signature() const {
    LayerSignature signature;
    for (const AdaptedArgument& argument : arguments) {
        signature.arguments.push_back({argument.name, argument.type});
    }
    for (const AdaptedArgument& argument : passed) {
        signature.passed.push_back({argument.name, argument.type});
    }
    return signature;
}

tl::expected<Adapter, std::string> fit(jit::Graph& graph,
                                       const std::vector<LayerParameter>& parameters,
                                       const PassedInputs& passed) {
    Adapter adapter;
    std::vector<std::size_t> all;
    std::vector<std::size_t> inputs;  // without the instance's own parameters
    std::vector<std::size_t> strict;  // without any module's
    for (std::size_t i = 1; i < graph.inputs().size(); ++i) {
        all.push_back(i);
        const auto parameter = passed.find(i);
        if (parameter == passed.end()) {
            strict.push_back(i);
            inputs.push_back(i);
        } else if (parameter->second.empty()) {
            inputs.push_back(i);
        } else {
            adapter.passed.push_back({parameter->second, {i}, type_of(graph, i)});
        }
    }
    auto arguments = assign_any(graph, inputs, parameters);
    if (!arguments && strict.size() < inputs.size()) {
        arguments = assign_any(graph, strict, parameters);
    }
    if (!arguments && !adapter.passed.empty()) {  // a forward that does take such a parameter
        inputs = all;
        adapter.passed.clear();
        arguments = assign_any(graph, inputs, parameters);
    }
    if (!arguments) {
        return tl::make_unexpected(inputs_do_not_fit(inputs.size(), parameters));
    }
    adapter.arguments = std::move(*arguments);
    find_element(graph, adapter);
    return adapter;
}

namespace {

// The one element of a tuple that is not None.
std::optional<std::size_t> only_element(const c10::TypePtr& type) {
    const auto tuple = type->cast<c10::TupleType>();
    std::optional<std::size_t> only;
    for (std::size_t i = 0; tuple && i < tuple->elements().size(); ++i) {
        if (tuple->elements()[i]->kind() == c10::TypeKind::NoneType) {
            continue;
        }
        if (only) {
            return std::nullopt;
        }
        only = i;
    }
    return only;
}

jit::Value* argument_value(jit::Graph& graph, const AdaptedArgument& argument, jit::Node* before) {
    std::vector<jit::Value*> values;
    for (const std::size_t input : argument.inputs) {
        values.push_back(graph.inputs().at(input));
    }
    if (argument.type->kind() != c10::TypeKind::TupleType ||
        values.front()->type()->kind() == c10::TypeKind::TupleType) {
        return values.front();
    }
    return graph.createTuple(values)->insertBefore(before)->output();
}

}  // namespace

tl::expected<Placement, std::string> place(jit::Graph& graph, const Adapter& adapter,
                                           jit::Function& method) {
    const c10::TypePtr declared = method.getSchema().returns().at(0).type();
    const c10::TypePtr returned = c10::unshapedType(graph.outputs()[0]->type());
    if (returned->kind() == c10::TypeKind::NoneType) {
        return tl::make_unexpected("nothing uses its result: the trace returns None");
    }
    const auto only = only_element(declared);
    const auto fits = [](const c10::TypePtr& type, const jit::Value* value) {
        return type->isSubtypeOf(*c10::unshapedType(value->type()));
    };
    jit::Node* tuple = graph.outputs()[0]->node();
    const auto try_at = [&](jit::Node* user, std::size_t input) -> std::optional<Placement> {
        if (fits(declared, user->input(input))) {
            return Placement{user, input};
        }
        if (only &&
            fits(declared->expectRef<c10::TupleType>().elements()[*only], user->input(input))) {
            return Placement{user, input, only};
        }
        return std::nullopt;
    };
    if (const auto whole = try_at(graph.return_node(), 0)) {
        return *whole;
    }
    if (adapter.element) {
        if (const auto element = try_at(tuple, *adapter.element)) {
            return *element;
        }
    }
    return tl::make_unexpected(fmt::format("the layer returns {}, the saved forward {}{}{}",
                                           declared->repr_str(), returned->repr_str(),
                                           adapter.unclear.empty() ? "" : ": ", adapter.unclear));
}

void apply(jit::Graph& graph, const Adapter& adapter, const Placement& placement,
           jit::Function& method) {
    jit::Node* call = graph.create(c10::prim::CallMethod, {graph.inputs().at(0)}, 1);
    graph.prependNode(call);
    for (const auto& arguments : {adapter.arguments, adapter.passed}) {
        for (const AdaptedArgument& argument : arguments) {
            call->addInput(argument_value(graph, argument, call));
        }
    }
    call->s_(c10::attr::name, method.name());
    call->output()->setType(method.getSchema().returns().at(0).type());
    jit::Value* result = call->output();
    if (placement.element) {
        jit::WithInsertPoint after(call->next());
        const auto& element =
            result->type()->expectRef<c10::TupleType>().elements()[*placement.element];
        jit::Value* index = graph.insertConstant(static_cast<std::int64_t>(*placement.element));
        result = graph.insertNode(graph.createTupleIndex(result, index, element))->output();
    }
    placement.user->replaceInput(placement.input, result);
    remove_unneeded(graph);
}

}  // namespace twinkle::runtime
