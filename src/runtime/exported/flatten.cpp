#include "runtime/exported/flatten.h"

#include "runtime/exported/origin.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <string_view>

namespace twinkle::runtime::exported {

using Kind = Argument::Kind;

namespace {

constexpr std::string_view higher_order = "torch.ops.higher_order.";
constexpr std::string_view grad_region = "torch.ops.higher_order.wrap_with_set_grad_enabled";
constexpr std::string_view autocast_region = "torch.ops.higher_order.wrap_with_autocast";
constexpr std::size_t most_nodes = 4u << 20;

const Argument& positional(const Node& node, std::size_t index, Kind kind) {
    if (index >= node.inputs.size() || node.inputs[index].value.kind != kind) {
        refuse_node(node, "its arguments are not those of this operator", "export the model again");
    }
    return node.inputs[index].value;
}

void for_each_value(Argument& argument, const std::function<void(std::string&)>& visit) {
    if (argument.is_value()) {
        visit(argument.text);
    }
    for (Argument& item : argument.items) {
        for_each_value(item, visit);
    }
}

bool is_region(const Node& node) {
    return node.target == grad_region || node.target == autocast_region;
}

class Flattening {
public:
    explicit Flattening(Program& program) : program_(program) {
        for (const InputSpec& input : program.inputs) {
            const auto meta = program.graph.tensors.find(input.value.text);
            if (input.value.kind != Kind::tensor || meta == program.graph.tensors.end()) {
                continue;
            }
            const bool given = input.kind == InputSpec::Kind::user && is_floating(meta->second);
            if (given || (input.kind == InputSpec::Kind::parameter && is_floating(meta->second))) {
                learning_.insert(input.value.text);
            }
        }
    }

    void run() {
        std::vector<Node> nodes = std::move(program_.graph.nodes);
        program_.graph.nodes.clear();
        for (Node& node : nodes) {
            add(std::move(node), nullptr, true);
        }
    }

private:
    static bool is_floating(const TensorMeta& meta) {
        return meta.dtype && (at::isFloatingType(*meta.dtype) || at::isComplexType(*meta.dtype));
    }

    void add(Node node, const std::shared_ptr<const Autocast>& autocast, bool grad) {
        if (node.target == grad_region) {
            const bool enabled = positional(node, 0, Kind::boolean).integer != 0;
            if (enabled && !grad) {
                refuse_node(node, "gradients are enabled again inside of torch.no_grad",
                            "export the model without that, or for inference");
            }
            inline_region(std::move(node), 1, autocast, enabled && grad);
        } else if (node.target == autocast_region) {
            auto region = std::make_shared<Autocast>();
            region->device = positional(node, 0, Kind::string).text;
            const bool enabled = positional(node, 2, Kind::boolean).integer != 0;
            if (enabled) {
                region->dtype =
                    static_cast<at::ScalarType>(positional(node, 1, Kind::scalar_type).integer);
            }
            inline_region(std::move(node), 4, enabled ? region : nullptr, grad);
        } else {
            node.autocast = autocast;
            for (NamedArgument& input : node.inputs) {
                for_each_value(input.value, [&](std::string& name) { name = resolved(name); });
            }
            note_learning(node, grad);
            program_.graph.nodes.push_back(std::move(node));
            if (program_.graph.nodes.size() > most_nodes) {
                refuse_node(program_.graph.nodes.back(), "the program is larger than any sane one",
                            "");
            }
        }
    }

    void note_learning(const Node& node, bool grad) {
        bool learns = false;
        for (const NamedArgument& input : node.inputs) {
            Argument copy = input.value;
            for_each_value(copy, [&](std::string& name) {
                learns = learns || learning_.contains(name) || (!grad && detached_.contains(name));
            });
        }
        for (Argument output : node.outputs) {
            for_each_value(output, [&](std::string& name) {
                const auto meta = program_.graph.tensors.find(name);
                if (learns && grad && meta != program_.graph.tensors.end() &&
                    is_floating(meta->second)) {
                    learning_.insert(name);
                } else if (learns && !grad) {
                    detached_.insert(name);
                }
            });
        }
    }

    std::string resolved(const std::string& name) const {
        const auto found = renamed_.find(name);
        return found == renamed_.end() ? name : found->second;
    }

    // The graph's own values get names that nothing else has.
    void inline_region(Node node, std::size_t graph_at,
                       const std::shared_ptr<const Autocast>& autocast, bool grad) {
        const Graph& graph = *positional(node, graph_at, Kind::graph).graph;
        const std::size_t operands = node.inputs.size() - graph_at - 1;
        if (graph.inputs.size() != operands) {
            refuse_node(node, "its graph does not take what it is given", "export the model again");
        }
        const std::string prefix = "region" + std::to_string(++regions_) + ".";
        std::map<std::string, std::string> inner;
        for (std::size_t i = 0; i < operands; ++i) {
            const Argument& operand = node.inputs[graph_at + 1 + i].value;
            if (!operand.is_value() || !graph.inputs[i].is_value()) {
                refuse_node(node, "it is given something else than values", "export it again");
            }
            inner[graph.inputs[i].text] = resolved(operand.text);
        }
        for (const auto& [name, meta] : graph.tensors) {
            program_.graph.tensors.emplace(prefix + name, meta);
        }
        for (const auto& [name, symbol] : graph.symbols) {
            program_.graph.symbols.emplace(prefix + name, symbol);
        }
        std::swap(inner, renamed_);
        for (Node one : graph.nodes) {
            const auto rename = [&](std::string& name) {
                renamed_.emplace(name, prefix + name);
                name = prefix + name;
            };
            std::vector<Argument> outputs = one.outputs;
            one.name = prefix + one.name;
            if (is_region(one)) {
                add(std::move(one), autocast, grad);  // it names its outputs by itself
                continue;
            }
            for (Argument& output : one.outputs) {
                for_each_value(output, rename);
            }
            add(std::move(one), autocast, grad);
        }
        std::vector<std::string> results;
        for (const Argument& output : graph.outputs) {
            results.push_back(output.is_value() ? resolved(output.text) : "");
        }
        std::swap(inner, renamed_);
        leave_region(node, results, grad);
    }

    // The region's outputs are called by what the node calls them.
    void leave_region(const Node& node, const std::vector<std::string>& results, bool grad) {
        std::vector<Argument> outputs;
        for (const Argument& output : node.outputs) {
            if (output.kind == Kind::list) {
                outputs.insert(outputs.end(), output.items.begin(), output.items.end());
            } else {
                outputs.push_back(output);
            }
        }
        if (outputs.size() != results.size()) {
            refuse_node(node, "its graph does not give what it gives", "export the model again");
        }
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            if (!outputs[i].is_value()) {
                continue;
            }
            if (results[i].empty()) {
                refuse_node(node, "its graph gives a constant", "export the model again");
            }
            const bool detach = !grad && detached_.contains(results[i]) &&
                                program_.graph.tensors.contains(results[i]);  // no size
            renamed_[outputs[i].text] = detach ? detached(node, results[i]) : results[i];
        }
    }

    std::string detached(const Node& region, const std::string& value) {
        Node node;
        node.target = "torch.ops.aten.detach.default";
        node.name = value + ".detached";
        node.modules = program_.graph.nodes.back().modules;
        node.stack_trace = region.stack_trace;
        Argument operand;
        operand.kind = Kind::tensor;
        operand.text = value;
        Argument result = operand;
        result.text = node.name;
        if (program_.graph.tensors.contains(result.text)) {
            return result.text;  // it is given twice
        }
        node.inputs.push_back({"self", operand});
        node.outputs.push_back(result);
        program_.graph.tensors.emplace(result.text, program_.graph.tensors.at(value));
        program_.graph.nodes.push_back(std::move(node));
        return result.text;
    }

public:
    void rename_outputs() {
        const auto rename = [&](std::string& name) { name = resolved(name); };
        for (OutputSpec& output : program_.outputs) {
            for_each_value(output.value, rename);
        }
    }

private:
    Program& program_;
    std::map<std::string, std::string> renamed_;
    std::set<std::string> learning_;  // gradients may flow into these
    std::set<std::string> detached_;  // and would have, into these
    std::size_t regions_ = 0;
};

// What does nothing at run time but repeat what the exporter saw.
bool only_repeats(const Node& node) {
    return node.target == "torch.ops.aten._assert_tensor_metadata.default" ||
           node.target.starts_with("torch.ops.aten.sym_constrain_range");
}

// Computes a number from sizes, and does nothing else.
bool is_of_sizes(const Node& node) {
    return node.target.starts_with("torch.ops.aten.sym_") ||
           (!node.target.starts_with("torch.ops.") && !node.target.starts_with(higher_order));
}

void remove_unused(Program& program) {
    std::set<std::string> used;
    const auto use = [&](std::string& name) { used.insert(name); };
    for (OutputSpec& output : program.outputs) {
        for_each_value(output.value, use);
    }
    std::vector<Node>& nodes = program.graph.nodes;
    std::vector<bool> kept(nodes.size(), true);
    for (std::size_t i = nodes.size(); i-- > 0;) {
        Node& node = nodes[i];
        bool wanted = !is_of_sizes(node);
        for (Argument& output : node.outputs) {
            for_each_value(output,
                           [&](std::string& name) { wanted = wanted || used.contains(name); });
        }
        kept[i] = wanted && !only_repeats(node);
        for (std::size_t k = 0; kept[i] && k < node.inputs.size(); ++k) {
            for_each_value(node.inputs[k].value, use);
        }
    }
    std::size_t index = 0;
    std::erase_if(nodes, [&](const Node&) { return !kept[index++]; });
}

}  // namespace

void flatten_regions(Program& program) {
    Flattening flattening(program);
    flattening.run();
    flattening.rename_outputs();
    remove_unused(program);
}

}  // namespace twinkle::runtime::exported
