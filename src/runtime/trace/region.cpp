#include "runtime/trace/region.h"

#include "runtime/graph/forward_methods.h"
#include "runtime/graph/graph_values.h"

#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using Nodes = std::unordered_set<const jit::Node*>;

bool writes(const jit::Node* node) {
    const auto* schema = node->maybeSchema();
    return node->kind() == c10::prim::SetAttr || (schema != nullptr && schema->is_mutable());
}

bool is_random(const jit::Node* node) {
    static const auto attention = c10::Symbol::fromQualString("aten::scaled_dot_product_attention");
    if (node->kind() == attention && node->inputs().size() > 4) {
        return constant_number(node->input(4)) != 0.0;
    }
    return node->isNondeterministic();
}

// Why a node cannot be part of a region that one call replaces.
std::optional<std::string> forbidden(const jit::Node* node) {
    const std::string name = node->kind().toQualString();
    if (node->kind() == c10::prim::CallMethod) {
        return "it calls a module, " + node->s(c10::attr::name);
    }
    if (!node->blocks().empty()) {
        return "it contains " + name;
    }
    if (writes(node)) {
        return name + " writes into a tensor";
    }
    return is_random(node) ? std::optional(name + " is random") : std::nullopt;
}

bool is_conversion(const jit::Node* node) {
    static const std::unordered_set<std::string> kinds = {"aten::Int", "prim::NumToTensor",
                                                          "aten::ScalarImplicit"};
    return kinds.contains(node->kind().toQualString());
}

bool belongs_to_code(const jit::Value* value) {
    if (value->node()->kind() != c10::prim::Constant) {
        return false;
    }
    const auto constant = jit::toIValue(value);
    return !constant || !constant->isTensor() || constant->toTensor().dim() == 0;
}

// False for numbers and lists of them, which are mostly sizes.
bool holds_tensors(const c10::TypePtr& type) {
    if (type->kind() == c10::TypeKind::TensorType) {
        return true;
    }
    const auto inner = type->containedTypes();
    return std::any_of(inner.begin(), inner.end(), holds_tensors);
}

bool has_input_of(const jit::Node* node, const Nodes& nodes) {
    const auto inputs = node->inputs();
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](const jit::Value* in) { return nodes.contains(in->node()); });
}

bool is_used_by(const jit::Node* node, const Nodes& nodes) {
    const auto outputs = node->outputs();
    return std::any_of(outputs.begin(), outputs.end(), [&](const jit::Value* output) {
        const auto& uses = output->uses();
        return std::any_of(uses.begin(), uses.end(),
                           [&](const jit::Use& use) { return nodes.contains(use.user); });
    });
}

class Closer {
public:
    Closer(const std::vector<jit::Node*>& nodes, const Surroundings& around)
        : given_(nodes.begin(), nodes.end()), around_(around) {
        region_.nodes = nodes;
        add_unpacking();
        std::sort(region_.nodes.begin(), region_.nodes.end(),
                  [](const jit::Node* one, const jit::Node* other) {
                      return one != other && one->isBefore(other);
                  });
    }

    tl::expected<Region, std::string> close() {
        if (auto problem = add_between()) {
            return tl::make_unexpected(*problem);
        }
        inside_ = Nodes(region_.nodes.begin(), region_.nodes.end());
        for (jit::Node* node : region_.nodes) {
            for (jit::Value* input : node->inputs()) {
                take(input);
            }
        }
        for (jit::Node* node : region_.nodes) {
            for (jit::Value* output : node->outputs()) {
                hand_on(output);
            }
        }
        if (region_.results.empty()) {
            return tl::make_unexpected("nothing uses what it computes");
        }
        if (is_written()) {
            return tl::make_unexpected("what it takes or gives is written into");
        }
        return std::move(region_);
    }

private:
    // A trace unpacks a list of tensors where it is made, by a node that has no stack.
    void add_unpacking() {
        const std::vector<jit::Node*> nodes = region_.nodes;
        for (jit::Node* node : nodes) {
            for (const jit::Value* output : node->outputs()) {
                for (const jit::Use& use : output->uses()) {
                    if (use.user->kind() == c10::prim::ListUnpack &&
                        use.user->owningBlock() == node->owningBlock() &&
                        given_.insert(use.user).second) {
                        region_.nodes.push_back(use.user);
                    }
                }
            }
        }
    }

    std::optional<std::string> add_between() {
        const std::vector<jit::Node*> between = span();
        Nodes after = given_;
        for (const jit::Node* node : between) {
            if (has_input_of(node, after)) {
                after.insert(node);
            }
        }
        Nodes before = given_;
        for (auto node = between.rbegin(); node != between.rend(); ++node) {
            if (is_used_by(*node, before)) {
                before.insert(*node);
            }
        }
        region_.nodes.clear();
        for (jit::Node* node : between) {
            const std::string name = node->kind().toQualString();
            if (!after.contains(node) || !before.contains(node)) {
                if (writes(node)) {
                    return name + " between its nodes writes into a tensor";
                }
                continue;
            }
            if (!given_.contains(node) && around_.is_foreign && around_.is_foreign(node)) {
                return name + " of its caller lies between what it computes";
            }
            if (auto problem = forbidden(node)) {
                return problem;
            }
            region_.nodes.push_back(node);
        }
        return std::nullopt;
    }

    std::vector<jit::Node*> span() const {
        std::vector<jit::Node*> all;
        for (jit::Node* node = region_.nodes.front(); node != region_.nodes.back();
             node = node->next()) {
            all.push_back(node);
        }
        all.push_back(region_.nodes.back());
        return all;
    }

    void take(jit::Value* value) {
        jit::Node* from = value->node();
        if (inside_.contains(from) || belongs_to_code(value) || !seen_.insert(value).second) {
            return;
        }
        if (is_conversion(from) || around_.shared.contains(from)) {
            if (copied_.insert(from).second) {
                for (jit::Value* input : from->inputs()) {
                    take(input);
                }
                region_.copied.push_back(from);
            }
            return;
        }
        region_.inputs.push_back(value);
    }

    void hand_on(jit::Value* output) {
        const auto& uses = output->uses();
        if (std::all_of(uses.begin(), uses.end(),
                        [&](const jit::Use& use) { return inside_.contains(use.user); })) {
            return;
        }
        const bool leak = !inside_.contains(behind_casts(output)->node()) ||
                          around_.shared.contains(output->node()) || !holds_tensors(output->type());
        (leak ? region_.leaks : region_.results).push_back(output);
    }

    // If it is written to, a view that becomes a copy, or a later read, would change results.
    bool is_written() const {
        const auto written = [&](const jit::Value* value) {
            return around_.written.contains(view_root(value));
        };
        return !around_.written.empty() &&
               (std::any_of(region_.inputs.begin(), region_.inputs.end(), written) ||
                std::any_of(region_.results.begin(), region_.results.end(), written));
    }

    Region region_;
    Nodes given_, inside_, copied_;
    const Surroundings& around_;
    std::unordered_set<const jit::Value*> seen_;
};

class Copier {
public:
    std::shared_ptr<jit::Graph> copy(const Region& region) {
        for (jit::Value* input : region.inputs) {
            known_[input] = graph_->addInput()->copyMetadata(input);
        }
        for (const auto* nodes : {&region.copied, &region.nodes}) {
            for (jit::Node* node : *nodes) {
                insert(node);
            }
        }
        std::vector<jit::Value*> results;
        for (jit::Value* result : region.results) {
            results.push_back(known_.at(result));
        }
        graph_->registerOutput(results.size() == 1
                                   ? results[0]
                                   : graph_->insertNode(graph_->createTuple(results))->output());
        return graph_;
    }

private:
    jit::Value* value_of(jit::Value* value) {
        jit::Value*& made = known_[value];
        if (made == nullptr) {  // a constant: it has no inputs
            made = graph_
                       ->insertNode(graph_->createClone(value->node(),
                                                        [](jit::Value* same) { return same; }))
                       ->output();
        }
        return made;
    }

    void insert(jit::Node* node) {
        for (jit::Value* input : node->inputs()) {
            value_of(input);
        }
        jit::Node* made = graph_->insertNode(
            graph_->createClone(node, [this](jit::Value* value) { return value_of(value); }));
        for (std::size_t i = 0; i < node->outputs().size(); ++i) {
            known_[node->outputs()[i]] = made->outputs()[i];
        }
    }

    std::shared_ptr<jit::Graph> graph_ = std::make_shared<jit::Graph>();
    std::unordered_map<const jit::Value*, jit::Value*> known_;
};

}  // namespace

tl::expected<Region, std::string> region_of(const std::vector<jit::Node*>& nodes,
                                            const Surroundings& around) {
    return Closer(nodes, around).close();
}

std::shared_ptr<jit::Graph> graph_of(const Region& region) {
    return Copier().copy(region);
}

}  // namespace twinkle::runtime
