#include "runtime/model/effect.h"

#include <torch/csrc/jit/runtime/custom_operator.h>

namespace twinkle::runtime {

namespace {

const torch::jit::RegisterOperators effect_registration({torch::jit::Operator(
    "twinkle::has_effect(Any value) -> ()",
    [](torch::jit::Stack& stack) { torch::jit::drop(stack, 1); },
    c10::AliasAnalysisKind::CONSERVATIVE)});
const auto effect_name = c10::Symbol::fromQualString("twinkle::has_effect");

}  // namespace

void write_effect_of(torch::jit::Graph& graph, torch::jit::Value* value) {
    graph.insertNode(graph.create(effect_name, {value}, 0));
}

}  // namespace twinkle::runtime
