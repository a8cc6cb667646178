#include "runtime/exported/aliases.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace twinkle::runtime::exported {

namespace {

constexpr std::array<std::string_view, 8> may_be_aliases = {
    "torch.ops.aten.to.dtype",        "torch.ops.aten.to.device",
    "torch.ops.aten.to.dtype_layout", "torch.ops.aten.to.other",
    "torch.ops.aten.type_as.default", "torch.ops.aten.contiguous.default",
    "torch.ops.aten.alias.default",   "torch.ops.aten.to.prim_dtype",
};

bool same(const std::vector<Extent>& one, const std::vector<Extent>& other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                      [](const Extent& a, const Extent& b) {
                          return a.number == b.number && a.expression == b.expression;
                      });
}

bool copies(const Node& node) {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [](const NamedArgument& input) {
        return input.name == "copy" && input.value.integer != 0;
    });
}

}  // namespace

std::unordered_map<std::string, std::string> aliases_in(const Graph& graph) {
    std::unordered_map<std::string, std::string> aliases;
    for (const Node& node : graph.nodes) {
        const bool may = std::find(may_be_aliases.begin(), may_be_aliases.end(), node.target) !=
                         may_be_aliases.end();
        if (!may || node.inputs.empty() || node.outputs.size() != 1 || copies(node)) {
            continue;
        }
        const Argument& from = node.inputs.front().value;
        const Argument& to = node.outputs.front();
        const auto before = graph.tensors.find(from.text);
        const auto after = graph.tensors.find(to.text);
        if (from.kind == Argument::Kind::tensor && to.kind == Argument::Kind::tensor &&
            before != graph.tensors.end() && after != graph.tensors.end() &&
            before->second.dtype == after->second.dtype &&
            before->second.device == after->second.device &&
            same(before->second.strides, after->second.strides) &&
            same(before->second.sizes, after->second.sizes)) {
            aliases[to.text] = from.text;
        }
    }
    return aliases;
}

}  // namespace twinkle::runtime::exported
