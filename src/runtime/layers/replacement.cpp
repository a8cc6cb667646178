#include "runtime/layers/replacement.h"

#include "base/text.h"
#include "runtime/dispatch/size_choice.h"
#include "runtime/graph/format.h"
#include "runtime/graph/forward_methods.h"
#include "runtime/graph/kernel_method.h"
#include "runtime/graph/operator_configuration.h"
#include "runtime/layers/prepared_class.h"
#include "runtime/layers/site_adapter.h"
#include "runtime/source/layer_compiler.h"

#include <set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// A layer in the place of what a graph computes.
struct Edit {
    std::shared_ptr<jit::Graph> graph;
    Adapter adapter;
    Placement placement;
    jit::Function* method = nullptr;
};

// One forward, with an edit for each layer: of its own graph where there is only one, else of
// copies.
struct EditedForward {
    jit::Function* forward = nullptr;
    std::vector<Edit> edits;
};

// A forward may do more than return something, and what it does would be lost.
std::optional<std::string> lost_effects(jit::Function& forward, jit::Function& layer) {
    std::set<std::string> lost = written_values(forward);
    for (const std::string& kept : written_values(layer)) {
        lost.erase(kept);
    }
    if (lost.empty()) {
        return std::nullopt;
    }
    return "its forward also changes its " +
           base::join(std::vector(lost.begin(), lost.end()), ", ") + ", which the layer does not";
}

// Edits `graph`, a forward or a copy of it, later: all must be known to fit before any is changed.
tl::expected<Edit, std::string> prepare(const c10::ClassTypePtr& type, jit::Function& forward,
                                        std::shared_ptr<jit::Graph> graph,
                                        const ReplacementRequest& request, std::size_t number) {
    const HostedLayer& hosted = request.layers[number];
    Compilation& compilation = *hosted.compilation;
    const auto parameters = layer_parameters(compilation.package(), hosted.layer);
    if (!parameters) {
        return tl::make_unexpected(parameters.error());
    }
    Edit edit;
    edit.graph = std::move(graph);
    const auto passed = request.passed.find(forward.name());
    auto adapter = fit(*edit.graph, *parameters,
                       passed == request.passed.end() ? PassedInputs{} : passed->second);
    if (!adapter) {
        return tl::make_unexpected(adapter.error());
    }
    edit.adapter = std::move(*adapter);
    const std::string name = name_of_kernel_method(
        number == 0 ? hosted.layer : fmt::format("{}_{}", hosted.layer, number + 1),
        forward.name());
    auto method =
        compile_layer(compilation, hosted.layer, type, name, edit.adapter.signature(), hosted.host);
    if (!method) {
        return tl::make_unexpected(method.error());
    }
    edit.method = *method;
    if (!hosted.cfg.empty() && !configure_operators(*jit::toGraphFunction(*edit.method).graph(),
                                                    hosted.op_namespace, hosted.cfg)) {
        remove_method(type, name);
        return tl::make_unexpected("none of its operators is configured");
    }
    if (auto lost = lost_effects(forward, *edit.method)) {
        remove_method(type, name);
        return tl::make_unexpected(*std::move(lost));
    }
    const auto placement = place(*edit.graph, edit.adapter, *edit.method);
    if (!placement) {
        remove_method(type, name);
        return tl::make_unexpected(placement.error());
    }
    edit.placement = *placement;
    return edit;
}

c10::TypePtr result_type(const jit::Graph& graph) {
    return c10::unshapedType(graph.outputs().at(0)->type());
}

// Why calls cannot choose between these edits and the original; nothing: they can.
std::optional<std::string> cannot_choose(const jit::Graph& original, const std::vector<Edit>& edits,
                                         std::size_t input) {
    if (original.inputs().size() <= input + 1 || !has_elements(original.inputs()[input + 1])) {
        return fmt::format("its input {} is no tensor, whose size would decide", input + 1);
    }
    const auto wanted = result_type(original);
    for (const Edit& edit : edits) {
        if (*result_type(*edit.graph) != *wanted) {
            return "the layers return other types than the original";
        }
    }
    return std::nullopt;
}

// The graph becomes a choice between the edited copies and what it was.
void choose_by_size(jit::Graph& graph, const std::vector<Edit>& edits,
                    const ReplacementRequest& request) {
    const auto original = graph.copy();
    graph.eraseOutput(0);
    for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
        node.destroyCurrent();
    }
    std::vector<Alternative> alternatives;
    for (const ReplacementRequest::Part& part : request.parts) {
        const auto& code = part.layer ? edits[*part.layer].graph : original;
        alternatives.push_back({part.up_to, [code](jit::Graph& into) {
                                    return jit::insertGraph(into, *code, into.inputs()).at(0);
                                }});
    }
    const jit::WithInsertPoint at(graph.block());
    graph.registerOutput(insert_choice(graph, graph.inputs().at(request.input + 1), alternatives));
}

void apply(const EditedForward& edited, const ReplacementRequest& request) {
    for (const Edit& edit : edited.edits) {
        apply(*edit.graph, edit.adapter, edit.placement, *edit.method);
    }
    if (!request.parts.empty()) {
        choose_by_size(*jit::toGraphFunction(*edited.forward).graph(), edited.edits, request);
    }
}

}  // namespace

tl::expected<void, KeepReason> replace_forward(const c10::ClassTypePtr& type,
                                               const ReplacementRequest& request) {
    std::vector<EditedForward> all;
    PreparedClass prepared(type);
    const auto give_up = [&](KeepReason reason) {
        for (const EditedForward& edited : all) {
            for (const Edit& done : edited.edits) {
                remove_method(type, done.method->name());
            }
        }
        return tl::make_unexpected(std::move(reason));
    };
    const auto forwards = forward_methods(type);
    if (forwards.empty()) {
        return give_up({Fallback::cannot_compile,
                        "the saved instance has no forward: nothing calls it under this name"});
    }
    for (const HostedLayer& layer : request.layers) {
        if (const auto declared = prepared.declare(layer); !declared) {
            return give_up({Fallback::cannot_compile, declared.error()});
        }
        if (request.layers.size() > 1 && prepare_method(*type) != nullptr) {
            return give_up({Fallback::cannot_compile,
                            layer.layer + " prepares its weights, so that it serves every call or "
                                          "none"});
        }
    }
    for (jit::Function* forward : forwards) {
        const auto graph = jit::toGraphFunction(*forward).graph();
        EditedForward& edited = all.emplace_back(EditedForward{forward, {}});
        for (std::size_t i = 0; i < request.layers.size(); ++i) {
            auto edit =
                prepare(type, *forward, request.parts.empty() ? graph : graph->copy(), request, i);
            if (!edit) {
                return give_up({Fallback::cannot_compile, edit.error()});
            }
            edited.edits.push_back(std::move(*edit));
            if (auto unusable = unusable_operator(*edited.edits.back().method, request.use)) {
                return give_up(*std::move(unusable));
            }
        }
        if (!request.parts.empty()) {
            if (auto problem = cannot_choose(*graph, edited.edits, request.input)) {
                return give_up({Fallback::cannot_compile, *std::move(problem)});
            }
        }
    }
    for (const EditedForward& edited : all) {
        apply(edited, request);
    }
    prepared.keep();
    return {};
}

}  // namespace twinkle::runtime
