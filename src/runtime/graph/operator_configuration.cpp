#include "runtime/graph/operator_configuration.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/graph_iterator.h>

#include <algorithm>
#include <set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

template <typename Visit>
void visit_operators(std::shared_ptr<jit::Graph> graph, const std::string& op_namespace,
                     const Visit& visit) {
    jit::DepthFirstGraphNodeIterator nodes(graph);
    for (jit::Node* node = nodes.next(); node != nullptr; node = nodes.next()) {
        if (node->kind().ns().toUnqualString() == op_namespace && node->maybeSchema() != nullptr) {
            visit(node);
        }
    }
}

// The value as the argument wants it; None: it does not take it.
c10::IValue taken(const c10::Argument& argument, const CfgFields& cfg) {
    const auto found = cfg.find(argument.name());
    if (!argument.kwarg_only() || found == cfg.end()) {
        return {};
    }
    const c10::IValue value =
        std::visit([](const auto& given) { return c10::IValue(given); }, found->second);
    return value.type()->isSubtypeOf(*argument.type()) ? value : c10::IValue();
}

}  // namespace

std::vector<std::string> operators_called(jit::Graph& graph, const std::string& op_namespace) {
    const auto copy = graph.copy();
    jit::Inline(*copy);
    std::vector<std::string> names;
    visit_operators(copy, op_namespace, [&](const jit::Node* node) {
        const std::string name = node->kind().toUnqualString();
        if (std::find(names.begin(), names.end(), name) == names.end()) {
            names.push_back(name);
        }
    });
    return names;
}

CfgFields keyword_defaults(const std::string& op_namespace, const std::string& name) {
    CfgFields defaults;
    const auto op = c10::Dispatcher::singleton().findSchema({op_namespace + "::" + name, ""});
    if (!op) {
        return defaults;
    }
    for (const c10::Argument& argument : op->schema().arguments()) {
        const auto& value = argument.default_value();
        if (!argument.kwarg_only() || !value) {
            continue;
        }
        if (value->isBool()) {
            defaults[argument.name()] = value->toBool();
        } else if (value->isInt()) {
            defaults[argument.name()] = value->toInt();
        } else if (value->isDouble()) {
            defaults[argument.name()] = value->toDouble();
        } else if (value->isString()) {
            defaults[argument.name()] = value->toStringRef();
        }
    }
    return defaults;
}

bool configure_operators(jit::Graph& graph, const std::string& op_namespace, const CfgFields& cfg) {
    jit::Inline(graph);
    std::set<std::string> given;
    visit_operators(graph.shared_from_this(), op_namespace, [&](jit::Node* node) {
        const auto& arguments = node->schema().arguments();
        for (std::size_t i = 0; i < arguments.size() && i < node->inputs().size(); ++i) {
            const c10::IValue value = taken(arguments[i], cfg);
            if (!value.isNone()) {
                const jit::WithInsertPoint before(node);
                node->replaceInput(i, graph.insertConstant(value));
                given.insert(arguments[i].name());
            }
        }
    });
    return !given.empty() && given.size() == cfg.size();
}

}  // namespace twinkle::runtime
