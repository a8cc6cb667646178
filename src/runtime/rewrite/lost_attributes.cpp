#include "runtime/rewrite/lost_attributes.h"

#include <torch/csrc/jit/ir/constants.h>

#include <array>
#include <functional>
#include <optional>

namespace twinkle::runtime {

namespace {

using torch::jit::Node;
using torch::jit::Value;

// A 0-dim tensor, float or int constant as a number; what a trace makes of a Python float.
std::optional<double> constant_number(const Value* value) {
    const auto constant = torch::jit::toIValue(value);
    if (!constant) {
        return std::nullopt;
    }
    if (constant->isDouble()) {
        return constant->toDouble();
    }
    if (constant->isInt()) {
        return static_cast<double>(constant->toInt());
    }
    if (constant->isTensor() && constant->toTensor().defined() && constant->toTensor().dim() == 0 &&
        constant->toTensor().is_floating_point()) {
        return constant->toTensor().item<double>();
    }
    return std::nullopt;
}

// The value found at `consumer`, where the producers in front of it are those of the rule.
using Extract = std::optional<double> (*)(const Node* consumer);

struct Rule {
    const char* consumer;  // the operator at which the rule starts
    Extract extract;
    std::array<const char*, 3> attributes;  // the names under which modules keep the value
};

// rsqrt(add(mean(…), eps)) or rsqrt(add(eps, mean(…)))
std::optional<double> epsilon_of_rsqrt(const Node* rsqrt) {
    const Node* add = rsqrt->input(0)->node();
    if (add->kind() != c10::aten::add || add->inputs().size() < 2) {
        return std::nullopt;
    }
    for (const std::size_t mean : {0, 1}) {
        if (add->input(mean)->node()->kind() == c10::aten::mean) {
            return constant_number(add->input(1 - mean));
        }
    }
    return std::nullopt;
}

// layer_norm(input, shape, weight, bias, eps, …)
std::optional<double> epsilon_of_layer_norm(const Node* node) {
    return node->inputs().size() > 4 ? constant_number(node->input(4)) : std::nullopt;
}

const std::array<Rule, 2> rules = {{
    {"aten::rsqrt", epsilon_of_rsqrt, {"variance_epsilon", "eps", "epsilon"}},
    {"aten::layer_norm", epsilon_of_layer_norm, {"eps", "variance_epsilon", "layer_norm_eps"}},
}};

void for_each_node(torch::jit::Block* block, const std::function<void(const Node*)>& visit) {
    for (Node* node : block->nodes()) {
        visit(node);
        for (torch::jit::Block* inner : node->blocks()) {
            for_each_node(inner, visit);
        }
    }
}

}  // namespace

std::map<std::string, c10::IValue> lost_attributes(torch::jit::Graph& graph) {
    std::map<std::string, std::optional<double>> found;
    for_each_node(graph.block(), [&](const Node* node) {
        for (const Rule& rule : rules) {
            if (std::string_view(node->kind().toQualString()) != rule.consumer) {
                continue;
            }
            const auto value = rule.extract(node);
            for (const char* name : rule.attributes) {
                const auto [entry, first] = found.emplace(name, value);
                if (!first && entry->second != value) {
                    entry->second = std::nullopt;  // two sites of the rule disagree
                }
            }
        }
    });
    std::map<std::string, c10::IValue> result;
    for (const auto& [name, value] : found) {
        if (value) {
            result.emplace(name, *value);
        }
    }
    return result;
}

}  // namespace twinkle::runtime
