#include "runtime/exported/full_masks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace twinkle::runtime::exported {

using Kind = Argument::Kind;

namespace {

constexpr std::string_view attention = "torch.ops.aten.scaled_dot_product_attention.default";
constexpr std::string_view mask_name = "attn_mask";
constexpr std::int64_t furthest = std::int64_t{1} << 40;  // sums of such numbers do not overflow

// What is known of all elements of a tensor, and the arange that it was made of.
struct Known {
    enum class Fact { not_negative, is_true } fact;
    std::string origin;
};
using Fact = Known::Fact;

const Argument* input_of(const Node& node, std::string_view name) {
    for (const NamedArgument& input : node.inputs) {
        if (input.name == name) {
            return &input.value;
        }
    }
    return nullptr;
}

bool is_integer(const Argument* value) {
    return value != nullptr && value->kind == Kind::integer;
}

class Masks {
public:
    explicit Masks(Program& program) : program_(program) {
        for (const Node& node : program.graph.nodes) {
            if (auto known = result_of(node)) {
                known_.emplace(node.outputs.front().text, *known);
            }
        }
        for (const Node& node : program.graph.nodes) {
            note_uses(node);
        }
    }

    void drop() {
        for (Node& node : program_.graph.nodes) {
            if (node.target == attention) {
                std::erase_if(node.inputs, [&](const NamedArgument& input) {
                    return input.name == mask_name && is_full(input.value);
                });
            }
        }
    }

private:
    bool is_full(const Argument& mask) const {
        const Known* known = known_of(&mask);
        return known != nullptr && known->fact == Fact::is_true &&
               !used_otherwise_.contains(known->origin);
    }

    const Known* known_of(const Argument* value) const {
        const auto found = value != nullptr && value->kind == Kind::tensor
                               ? known_.find(value->text)
                               : known_.end();
        return found == known_.end() ? nullptr : &found->second;
    }

    std::optional<Known> result_of(const Node& node) const {
        if (node.outputs.size() != 1 || node.outputs.front().kind != Kind::tensor) {
            return std::nullopt;
        }
        if (node.target == "torch.ops.aten.arange.default" &&
            input_of(node, "dtype") == nullptr) {  // narrow numbers overflow
            return Known{Fact::not_negative, node.outputs.front().text};
        }
        const Known* self = known_of(input_of(node, "self"));
        if (self == nullptr) {
            return std::nullopt;
        }
        const Argument* other = input_of(node, "other");
        const bool of_numbers = self->fact == Fact::not_negative && is_integer(other);
        if (node.target == "torch.ops.aten.unsqueeze.default" ||
            node.target == "torch.ops.aten.expand.default") {
            return *self;
        }
        if (node.target == "torch.ops.aten.add.Tensor" && of_numbers && other->integer >= 0 &&
            other->integer <= furthest && input_of(node, "alpha") == nullptr) {
            return *self;
        }
        if (node.target == "torch.ops.aten.ge.Scalar" && of_numbers && other->integer <= 0) {
            return Known{Fact::is_true, self->origin};
        }
        return std::nullopt;
    }

    // Anything else may write into such a tensor, or into a view of it.
    void note_uses(const Node& node) {
        const bool own = node.target == attention ||
                         (!node.outputs.empty() && known_.contains(node.outputs.front().text));
        for (const NamedArgument& input : node.inputs) {
            if (!own) {
                note_use(input.value);
            }
        }
    }

    void note_use(const Argument& value) {
        if (const Known* known = known_of(&value)) {
            used_otherwise_.insert(known->origin);
        }
        for (const Argument& item : value.items) {
            note_use(item);
        }
    }

    Program& program_;
    std::map<std::string, Known> known_;
    std::set<std::string> used_otherwise_;
};

}  // namespace

void drop_full_masks(Program& program) {
    Masks(program).drop();
}

}  // namespace twinkle::runtime::exported
