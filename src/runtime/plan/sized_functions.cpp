#include "runtime/plan/sized_functions.h"

#include "runtime/dispatch/size_choice.h"
#include "runtime/graph/format.h"
#include "runtime/trace/region_call.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// Names and defaults of parameters may differ: calls pass all of them, by position.
bool called_alike(const c10::FunctionSchema& one, const c10::FunctionSchema& other) {
    const auto same = [](const c10::Argument& a, const c10::Argument& b) {
        return *a.type() == *b.type();
    };
    return std::equal(one.arguments().begin(), one.arguments().end(), other.arguments().begin(),
                      other.arguments().end(), same) &&
           std::equal(one.returns().begin(), one.returns().end(), other.returns().begin(),
                      other.returns().end(), same);
}

}  // namespace

tl::expected<std::shared_ptr<jit::Graph>, std::string> graph_of(const SizedFunctions& functions) {
    const auto& schema = functions.parts.front().first->getSchema();
    auto graph = std::make_shared<jit::Graph>();
    std::vector<jit::Value*> inputs;
    for (const c10::Argument& argument : schema.arguments()) {
        inputs.push_back(graph->addInput(argument.name())->setType(argument.type()));
    }
    if (functions.input >= inputs.size() || !has_elements(inputs[functions.input])) {
        return tl::make_unexpected(fmt::format(
            "its argument {} is no tensor, whose size would decide", functions.input + 1));
    }
    std::vector<Alternative> alternatives;
    for (const auto& [function, up_to] : functions.parts) {
        if (!called_alike(function->getSchema(), schema)) {
            return tl::make_unexpected("what stands for it is not called like the original");
        }
        alternatives.push_back({up_to, [&inputs, called = function](jit::Graph& into) {
                                    return insert_call(into, *called, inputs, 1, {}).at(0);
                                }});
    }
    const jit::WithInsertPoint at(graph->block());
    graph->registerOutput(insert_choice(*graph, inputs[functions.input], alternatives));
    return graph;
}

}  // namespace twinkle::runtime
