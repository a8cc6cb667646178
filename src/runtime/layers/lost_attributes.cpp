#include "runtime/layers/lost_attributes.h"
#include "runtime/graph/format.h"

#include "runtime/graph/forward_methods.h"
#include "runtime/graph/graph_values.h"
#include "runtime/graph/graph_walk.h"

#include <algorithm>
#include <functional>
#include <optional>

namespace twinkle::runtime {

namespace {

using torch::jit::Node;
using torch::jit::Value;
using Names = std::vector<const char*>;

// The tables ----------------------------------------------------------------------------------

enum class Where {
    anywhere,  // in the graph
    whole,     // the operator is all that the module does, but for casts
};

enum class How {
    value,              // the constant
    only_none,          // None where the operator gets None; a parameter otherwise
    minus_one_is_none,  // -1 stands for None
};

// An attribute is an argument of an operator, by the argument's name in the operator's schema.
struct ArgumentRule {
    const char* op;
    const char* argument;
    Names attributes;
    Where where = Where::whole;
    How how = How::value;
};

const std::vector<ArgumentRule> argument_rules = {
    {"aten::layer_norm", "eps", {"eps", "variance_epsilon", "layer_norm_eps"}, Where::anywhere},
    {"aten::layer_norm", "normalized_shape", {"normalized_shape"}, Where::anywhere},
    {"aten::layer_norm", "weight", {"weight"}, Where::whole, How::only_none},
    {"aten::layer_norm", "bias", {"bias"}, Where::whole, How::only_none},
    {"aten::rms_norm", "eps", {"eps", "variance_epsilon", "epsilon"}, Where::anywhere},
    {"aten::rms_norm", "normalized_shape", {"normalized_shape"}, Where::anywhere},
    {"aten::rms_norm", "weight", {"weight"}, Where::whole, How::only_none},
    {"aten::group_norm", "num_groups", {"num_groups"}},
    {"aten::group_norm", "eps", {"eps"}},
    {"aten::batch_norm", "eps", {"eps"}},
    {"aten::batch_norm", "momentum", {"momentum"}},
    {"aten::linear", "bias", {"bias"}, Where::whole, How::only_none},
    {"aten::_convolution", "bias", {"bias"}, Where::whole, How::only_none},
    {"aten::_convolution", "stride", {"stride"}},
    {"aten::_convolution", "padding", {"padding"}},
    {"aten::_convolution", "dilation", {"dilation"}},
    {"aten::_convolution", "output_padding", {"output_padding"}},
    {"aten::_convolution", "groups", {"groups"}},
    {"aten::_convolution_mode", "bias", {"bias"}, Where::whole, How::only_none},
    {"aten::_convolution_mode", "stride", {"stride"}},
    {"aten::_convolution_mode", "padding", {"padding"}},
    {"aten::_convolution_mode", "dilation", {"dilation"}},
    {"aten::_convolution_mode", "groups", {"groups"}},
    {"aten::embedding", "padding_idx", {"padding_idx"}, Where::whole, How::minus_one_is_none},
    {"aten::embedding", "scale_grad_by_freq", {"scale_grad_by_freq"}},
    {"aten::embedding", "sparse", {"sparse"}},
    {"aten::gelu", "approximate", {"approximate"}},
    {"aten::leaky_relu", "negative_slope", {"negative_slope"}},
    {"aten::elu", "alpha", {"alpha"}},
    {"aten::hardtanh", "min_val", {"min_val"}},
    {"aten::hardtanh", "max_val", {"max_val"}},
    {"aten::softmax", "dim", {"dim"}},
    {"aten::log_softmax", "dim", {"dim"}},
    {"aten::dropout", "p", {"p"}},
};

// Activations take place or not: two operators.
const std::vector<std::pair<const char*, bool>> in_place_rules = {
    {"aten::silu", false},     {"aten::silu_", true},     {"aten::relu", false},
    {"aten::relu_", true},     {"aten::dropout", false},  {"aten::dropout_", true},
    {"aten::hardtanh", false}, {"aten::hardtanh_", true}, {"aten::leaky_relu", false},
};

// An attribute is a size of a parameter that the operator takes.
struct SizeRule {
    const char* op;
    const char* argument;
    std::size_t dimension;
    const char* attribute;
};

const std::vector<SizeRule> size_rules = {
    {"aten::linear", "weight", 0, "out_features"},
    {"aten::linear", "weight", 1, "in_features"},
    {"aten::embedding", "weight", 0, "num_embeddings"},
    {"aten::embedding", "weight", 1, "embedding_dim"},
    {"aten::addmm", "mat2", 0, "nx"},  // Conv1D of transformers
    {"aten::addmm", "mat2", 1, "nf"},
};

// Where an RMSNorm's epsilon stands: inside of one of these, added to a mean.
struct RootRule {
    const char* op;
    std::optional<double> exponent;  // of aten::pow
    bool decides = false;            // where it is another's root, no epsilon is certain
};

const std::vector<RootRule> root_rules = {
    {"aten::rsqrt", std::nullopt, true},
    {"aten::sqrt", std::nullopt},
    {"aten::pow", -0.5},
    {"aten::pow", 0.5},
};

const Names epsilon_names = {"variance_epsilon", "eps", "epsilon"};

// Reading graphs by them ----------------------------------------------------------------------

bool is(const Node* node, const char* op) {
    return std::string_view(node->kind().toQualString()) == op;
}

const Value* argument_of(const Node* node, const char* name) {
    const auto* schema = node->maybeSchema();
    const auto index = schema == nullptr ? std::nullopt : schema->argumentIndexWithName(name);
    return index && *index < static_cast<int>(node->inputs().size()) ? node->input(*index)
                                                                     : nullptr;
}

// root(add(mean(…), eps)) or root(add(eps, mean(…))): eps
std::optional<double> epsilon_under(const Node* root, const RootRule& rule) {
    if (!is(root, rule.op) || (rule.exponent && constant_number(root->input(1)) != rule.exponent)) {
        return std::nullopt;
    }
    const Node* add = behind_casts(root->input(0))->node();
    if (add->kind() != c10::aten::add || add->inputs().size() < 2) {
        return std::nullopt;
    }
    for (const std::size_t mean : {0, 1}) {
        if (behind_casts(add->input(mean))->node()->kind() == c10::aten::mean) {
            return constant_number(add->input(1 - mean));
        }
    }
    return std::nullopt;
}

bool is_self(const Value* value) {
    return value->node()->kind() == c10::prim::Param && value->offset() == 0;
}

class Reader {
public:
    explicit Reader(const torch::jit::Module* module) : module_(module) {}

    void read(const torch::jit::Graph& graph, const PassedInputs& passed) {
        graph_ = &graph;
        passed_ = passed;
        visit(graph.block());
    }

    LostAttributes result() const {
        LostAttributes lost;
        lost.withheld = withheld_;
        for (const auto& [name, value] : found_) {
            if (!value) {
                lost.withheld.emplace(
                    name, "its graph has several values for it, or none that is certain");
            } else if (!withheld_.contains(name)) {
                lost.values.emplace(name, *value);
            }
        }
        return lost;
    }

private:
    void visit(const torch::jit::Block* block) {
        for_each_node(block, [&](const Node* node) {
            arguments(node);
            sizes(node);
            in_place(node);
            epsilon(node);
            zero_centred(node);
        });
    }

    void add(const char* name, const c10::IValue& value) {
        const auto [entry, first] = found_.emplace(name, value);
        if (!first && entry->second && !(*entry->second == value)) {
            entry->second = std::nullopt;
        }
    }

    void arguments(const Node* node) {
        for (const ArgumentRule& rule : argument_rules) {
            if (!is(node, rule.op) || (rule.where == Where::whole && !is_whole(node))) {
                continue;
            }
            const Value* argument = argument_of(node, rule.argument);
            auto value = argument == nullptr ? std::nullopt : constant_value(argument);
            if (!value || (rule.how == How::only_none && !value->isNone())) {
                continue;
            }
            if (rule.how == How::minus_one_is_none && value->isInt() && value->toInt() == -1) {
                value = c10::IValue();
            }
            for (const char* name : rule.attributes) {
                add(name, *value);
            }
        }
    }

    void in_place(const Node* node) {
        for (const auto& [op, value] : in_place_rules) {
            if (is(node, op) && is_whole(node)) {
                add("inplace", value);
            }
        }
    }

    void sizes(const Node* node) {
        for (const SizeRule& rule : size_rules) {
            if (is(node, rule.op)) {
                const auto parameter = parameter_of(argument_of(node, rule.argument));
                if (parameter && static_cast<std::size_t>(parameter->dim()) > rule.dimension) {
                    add(rule.attribute, parameter->size(static_cast<std::int64_t>(rule.dimension)));
                }
            }
        }
    }

    void epsilon(const Node* node) {
        for (const RootRule& rule : root_rules) {
            const auto value = epsilon_under(node, rule);
            for (const char* name : epsilon_names) {
                if (value) {
                    add(name, *value);
                } else if (rule.decides && is(node, rule.op)) {
                    found_[name] = std::nullopt;
                }
            }
        }
    }

    // weight + 1: not the norm whose epsilon is called variance_epsilon, and which kernels for
    // RMSNorm compute.
    void zero_centred(const Node* node) {
        if (node->kind() != c10::aten::add || node->inputs().size() < 2) {
            return;
        }
        for (const std::size_t constant : {0, 1}) {
            const auto name = own_attribute(behind_casts(node->input(1 - constant)));
            if (name && constant_number(node->input(constant)) == 1.0) {
                withheld_.emplace("variance_epsilon",
                                  fmt::format("its graph multiplies by {} + 1, which the norms "
                                              "with a variance_epsilon do not",
                                              *name));
            }
        }
    }

    bool is_whole(const Node* node) const {
        const bool takes_input =
            std::any_of(node->inputs().begin(), node->inputs().end(), [&](const Value* input) {
                const Value* from = behind_casts(input);
                return from->node()->kind() == c10::prim::Param && !is_self(from) &&
                       !passed_name(from);
            });
        return takes_input && node->outputs().size() == 1 && is_returned(node->output());
    }

    bool is_returned(const Value* value) const {
        const Value* returned = graph_->outputs().at(0);
        if (returned->node()->kind() != c10::prim::TupleConstruct) {
            return behind_casts(returned) == value;
        }
        const auto& elements = returned->node()->inputs();
        return std::any_of(elements.begin(), elements.end(),
                           [&](const Value* one) { return behind_casts(one) == value; });
    }

    std::optional<std::string> passed_name(const Value* value) const {
        const auto input = passed_.find(value->offset());
        return value->node()->kind() == c10::prim::Param && input != passed_.end()
                   ? std::optional(input->second)
                   : std::nullopt;
    }

    std::optional<at::Tensor> parameter_of(const Value* value) const {
        if (value == nullptr || module_ == nullptr) {
            return std::nullopt;
        }
        auto name = own_attribute(value);
        if (!name) {
            name = passed_name(value);
        }
        if (!name || !module_->hasattr(*name) || !module_->attr(*name).isTensor()) {
            return std::nullopt;
        }
        return module_->attr(*name).toTensor();
    }

    const torch::jit::Module* module_;
    const torch::jit::Graph* graph_ = nullptr;
    PassedInputs passed_;
    std::map<std::string, std::optional<c10::IValue>> found_;
    std::map<std::string, std::string> withheld_;
};

}  // namespace

LostAttributes lost_attributes(const torch::jit::Module& module,
                               const std::map<std::string, PassedInputs>& passed) {
    Reader reader(&module);
    for (torch::jit::Function* method : forward_methods(module.type())) {
        if (auto* compiled = torch::jit::tryToGraphFunction(*method)) {
            const auto inputs = passed.find(method->name());
            reader.read(*compiled->graph(),
                        inputs == passed.end() ? PassedInputs{} : inputs->second);
        }
    }
    return reader.result();
}

LostAttributes lost_attributes(const torch::jit::Graph& graph) {
    Reader reader(nullptr);
    reader.read(graph, {});
    return reader.result();
}

}  // namespace twinkle::runtime
