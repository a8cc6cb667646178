#include "runtime/exported/tokens.h"

#include "archive/json_reader.h"
#include "base/text.h"

#include <algorithm>
#include <set>
#include <string>

namespace twinkle::runtime::exported {

using archive::InvalidJson;

namespace {

constexpr std::string_view with_effects = "torch.ops.higher_order.with_effects";

class Tokens {
public:
    explicit Tokens(const Program& program) {
        for (const InputSpec& input : program.inputs) {
            if (input.kind == InputSpec::Kind::token) {
                names_.insert(input.value.text);
            }
        }
    }

    // with_effects(token, op, arguments…) → (token, results…)
    void unwrap(Node& node) {
        const bool usual = node.inputs.size() >= 2 && is_token(node.inputs[0].value) &&
                           node.inputs[1].value.kind == Argument::Kind::op &&
                           !node.outputs.empty() &&
                           node.outputs.front().kind == Argument::Kind::tensor;
        if (!usual || node.inputs[1].value.text == with_effects) {
            throw InvalidJson(base::printable(node.name) +
                              " is no operator with effects as PyTorch writes them");
        }
        node.target = node.inputs[1].value.text;
        node.inputs.erase(node.inputs.begin(), node.inputs.begin() + 2);
        names_.insert(node.outputs.front().text);
        node.outputs.erase(node.outputs.begin());
        node.has_effects = true;
    }

    bool is_token(const Argument& value) const {
        return value.kind == Argument::Kind::tensor && names_.contains(value.text);
    }

    void forbid(const Argument& value) const {
        if (is_token(value)) {
            throw InvalidJson(
                "the token " + base::printable(value.text) +
                    " is used as a tensor, or inside of cond, while_loop, map or scan",
                "save the program as torch.export.export gives it, without run_decompositions()");
        }
        for (const Argument& item : value.items) {
            forbid(item);
        }
    }

private:
    std::set<std::string> names_;
};

}  // namespace

void remove_tokens(Program& program) {
    Tokens tokens(program);
    for (Node& node : program.graph.nodes) {
        if (node.target == with_effects) {
            tokens.unwrap(node);
        }
        for (const NamedArgument& input : node.inputs) {
            tokens.forbid(input.value);
        }
    }
    std::erase_if(program.inputs,
                  [](const InputSpec& one) { return one.kind == InputSpec::Kind::token; });
    std::erase_if(program.outputs,
                  [](const OutputSpec& one) { return one.kind == OutputSpec::Kind::token; });
    for (const OutputSpec& output : program.outputs) {
        tokens.forbid(output.value);
    }
}

}  // namespace twinkle::runtime::exported
