#include "runtime/rewrite/site_adapter.h"
#include "runtime/format.h"

#include <functional>
#include <unordered_set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// Whether a value is an input under another dtype or view at most: x, x.to(float32), x.detach().
bool passes_through(const jit::Value* value) {
    static const std::unordered_set<std::string> transparent = {
        "aten::to", "aten::detach", "aten::contiguous", "aten::alias", "aten::type_as"};
    while (value->node()->kind() != c10::prim::Param) {
        if (!transparent.contains(value->node()->kind().toQualString())) {
            return false;
        }
        value = value->node()->input(0);
    }
    return true;
}

bool mutates(const jit::Block* block) {
    for (const jit::Node* node : block->nodes()) {
        const auto* schema = node->maybeSchema();
        if ((schema != nullptr && schema->is_mutable()) || node->kind() == c10::prim::SetAttr) {
            return true;
        }
        for (const jit::Block* inner : node->blocks()) {
            if (mutates(inner)) {
                return true;
            }
        }
    }
    return false;
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

}  // namespace

tl::expected<Adapter, std::string> fit(jit::Graph& graph,
                                       const std::vector<LayerParameter>& parameters) {
    Adapter adapter;
    const std::size_t given = graph.inputs().size() - 1;
    std::size_t required = 0;
    for (const LayerParameter& parameter : parameters) {
        required += parameter.has_default ? 0 : 1;
    }
    if (given < required || given > parameters.size()) {
        return tl::make_unexpected(fmt::format(
            "the saved forward takes {} inputs, the layer {}", given,
            required == parameters.size() ? std::to_string(required)
                                          : fmt::format("{} to {}", required, parameters.size())));
    }
    for (std::size_t i = 1; i <= given; ++i) {
        adapter.inputs.push_back(i);
        adapter.input_types.push_back(c10::unshapedType(graph.inputs()[i]->type()));
    }
    find_element(graph, adapter);
    return adapter;
}

tl::expected<Placement, std::string> place(jit::Graph& graph, const Adapter& adapter,
                                           jit::Function& method) {
    const c10::TypePtr declared = method.getSchema().returns().at(0).type();
    const auto fits = [&](const jit::Value* value) {
        return declared->isSubtypeOf(*c10::unshapedType(value->type()));
    };
    if (fits(graph.outputs()[0])) {
        return Placement{graph.return_node(), 0};
    }
    jit::Node* tuple = graph.outputs()[0]->node();
    if (adapter.element && fits(tuple->input(*adapter.element))) {
        return Placement{tuple, *adapter.element};
    }
    return tl::make_unexpected(fmt::format("the layer returns {}, the saved forward {}{}{}",
                                           declared->repr_str(),
                                           graph.outputs()[0]->type()->repr_str(),
                                           adapter.unclear.empty() ? "" : ": ", adapter.unclear));
}

void apply(jit::Graph& graph, const Adapter& adapter, const Placement& placement,
           jit::Function& method) {
    std::vector<jit::Value*> arguments{graph.inputs().at(0)};
    for (const std::size_t input : adapter.inputs) {
        arguments.push_back(graph.inputs().at(input));
    }
    jit::Node* call = graph.create(c10::prim::CallMethod, arguments, 1);
    call->s_(c10::attr::name, method.name());
    call->output()->setType(method.getSchema().returns().at(0).type());
    graph.prependNode(call);
    placement.user->replaceInput(placement.input, call->output());
    remove_unneeded(graph);
}

}  // namespace twinkle::runtime
