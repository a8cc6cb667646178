#include "runtime/convert/device_constants.h"

#include "runtime/convert/dtype_flow.h"
#include "runtime/graph/dtype_rules.h"
#include "runtime/graph/graph_walk.h"
#include "runtime/graph/past_runs.h"

#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <functional>
#include <set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

constexpr std::size_t deepest_constant = 64;

// The device that an operator is told by name; none: by a value, or not at all.
std::optional<c10::Device> named_device(const jit::Node* node, std::size_t input) {
    const auto constant = jit::toIValue(node->input(input));
    if (constant && constant->isDevice()) {
        return constant->toDevice();
    }
    return std::nullopt;
}

void for_each_named_device(
    const jit::Module& model,
    const std::function<void(jit::Node*, std::size_t, const c10::Device&)>& visit) {
    for (const auto& graph : graphs_of(model)) {
        std::vector<std::pair<jit::Node*, std::size_t>> places;
        for_each_node_and_forked(graph->block(), [&](const jit::Node* node) {
            const auto index =
                node->kind().is_aten() ? argument_index(node, "device") : std::nullopt;
            if (index && named_device(node, *index)) {
                places.emplace_back(const_cast<jit::Node*>(node), *index);
            }
        });
        for (const auto& [node, index] : places) {
            visit(node, index, *named_device(node, index));
        }
    }
}

bool is_weight(const c10::ClassType& type, std::size_t slot) {
    return (type.is_parameter(slot) || type.is_buffer(slot)) &&
           type.getAttribute(slot)->kind() == c10::TypeKind::TensorType;
}

// The names of the attributes that lead from a module to a weight of it.
std::vector<std::string> way_to_weight(const c10::ClassType& type, std::size_t depth = 0) {
    for (std::size_t i = 0; i < type.numAttributes(); ++i) {
        if (is_weight(type, i)) {
            return {type.getAttributeName(i)};
        }
    }
    for (std::size_t i = 0; i < type.numAttributes() && depth < deepest_constant; ++i) {
        const auto inner = type.getAttribute(i)->cast<c10::ClassType>();
        if (inner && inner->is_module()) {
            auto way = way_to_weight(*inner, depth + 1);
            if (!way.empty()) {
                way.insert(way.begin(), type.getAttributeName(i));
                return way;
            }
        }
    }
    return {};
}

// Inserts at the start of a graph the device of a weight, else of a tensor that is passed.
jit::Value* device_in(jit::Graph& graph, const torch::Device& otherwise) {
    const jit::WithInsertPoint start(*graph.nodes().begin());
    jit::Value* tensor = nullptr;
    const auto self =
        graph.inputs().empty() ? nullptr : graph.inputs()[0]->type()->cast<c10::ClassType>();
    if (self && self->is_module()) {
        jit::Value* object = graph.inputs()[0];
        for (const std::string& name : way_to_weight(*self)) {
            object = graph.insertGetAttr(object, name);
            tensor = object;
        }
    }
    for (jit::Value* input : graph.inputs()) {
        if (tensor == nullptr && input->type()->kind() == c10::TypeKind::TensorType) {
            tensor = input;
        }
    }
    if (tensor == nullptr) {
        return graph.insertConstant(otherwise);
    }
    jit::Value* device = graph.insertNode(graph.create(c10::prim::device, {tensor}))->output();
    device->setType(c10::DeviceObjType::get());
    return device;
}

void count(ConstantReport& report, const std::map<const jit::Graph*, std::string>& names,
           const jit::Node* node, const c10::Device& device) {
    const auto name = names.find(node->owningGraph());
    ++report.methods[name == names.end() ? "a function" : name->second];
    ++report.found;
    const std::string text = device.str();
    if (std::find(report.named.begin(), report.named.end(), text) == report.named.end()) {
        report.named.push_back(text);
    }
}

}  // namespace

ConstantReport device_constants(const jit::Module& model) {
    ConstantReport report;
    const auto names = method_names(model);
    for_each_named_device(model, [&](const jit::Node* node, std::size_t, const auto& device) {
        count(report, names, node, device);
    });
    return report;
}

ConstantReport release_devices(jit::Module& model, const torch::Device& device) {
    ConstantReport report;
    const auto names = method_names(model);
    std::map<const jit::Graph*, jit::Value*> found;
    for_each_named_device(model, [&](jit::Node* node, std::size_t input, const auto& named) {
        if (named == device) {
            return;
        }
        jit::Graph& graph = *node->owningGraph();
        const auto [known, first] = found.try_emplace(&graph, nullptr);
        if (first) {
            known->second = device_in(graph, device);
        }
        count(report, names, node, named);
        node->replaceInput(input, known->second);
        ++report.rewritten;
    });
    if (report.rewritten > 0) {
        discard_past_runs(model);
    }
    return report;
}

}  // namespace twinkle::runtime
