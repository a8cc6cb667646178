#include "runtime/patterns/in_place.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace twinkle::runtime {

namespace {

// Maps each in-place operator to its plain form. With one tensor, both return its dtype; a second
// tensor may change that of the plain form (keeps_the_dtype).
const std::unordered_map<c10::Symbol, c10::Symbol>& all_in_place() {
    static const auto& all = *[] {
        auto* made = new std::unordered_map<c10::Symbol, c10::Symbol>();
        for (const char* name :
             {"relu", "relu6", "hardtanh", "silu", "hardswish", "hardsigmoid", "mish", "leaky_relu",
              "elu", "sigmoid", "tanh", "clamp", "add", "sub", "mul", "div"}) {
            const std::string plain = std::string("aten::") + name;
            made->emplace(c10::Symbol::fromQualString(plain + "_"),
                          c10::Symbol::fromQualString(plain));
        }
        return made;
    }();
    return all;
}

// Whether the operator's result shares memory with no other tensor.
bool makes_new(const FlatNode& node) {
    static const auto& all = *new std::unordered_set<c10::Symbol>{
        symbol("aten::conv2d"),     symbol("aten::_convolution"), symbol("aten::batch_norm"),
        symbol("aten::linear"),     symbol("aten::matmul"),       symbol("aten::addmm"),
        symbol("aten::layer_norm"), symbol("aten::group_norm"),   symbol("aten::add"),
        symbol("aten::sub"),        symbol("aten::mul"),          symbol("aten::div"),
        symbol("aten::relu"),       symbol("aten::relu6"),        symbol("aten::silu"),
        symbol("aten::gelu"),       symbol("aten::hardswish"),    symbol("aten::hardsigmoid"),
        symbol("aten::hardtanh"),   symbol("aten::leaky_relu"),   symbol("aten::sigmoid"),
        symbol("aten::tanh"),       symbol("aten::mish"),         symbol("aten::elu"),
        symbol("aten::cat"),        symbol("aten::clamp")};
    return all.contains(node.op) && !node.outputs.empty();
}

// A second tensor may be of another dtype, in which the written one is not, or of more dimensions.
bool keeps_the_dtype(const FlatGraph& graph, const FlatNode& node) {
    const FlatValue& first = graph.value(node.inputs[0].value);
    return std::all_of(node.inputs.begin() + 1, node.inputs.end(), [&](const FlatInput& input) {
        const FlatValue& value = graph.value(input.value);
        return value.kind != ValueKind::tensor ||
               (value.dtype == first.dtype && value.dtype != c10::ScalarType::Undefined);
    });
}

bool is_private(const FlatGraph& graph, std::int32_t index) {
    const FlatNode& node = graph.node(index);
    const FlatValue& written = graph.value(node.inputs[0].value);
    if (written.kind != ValueKind::tensor || written.node == nothing || written.escapes ||
        written.users.size() != 1) {
        return false;
    }
    const FlatNode& maker = graph.node(written.node);
    return maker.block == node.block && !maker.is_in_place && makes_new(maker) &&
           keeps_the_dtype(graph, node);
}

}  // namespace

std::optional<c10::Symbol> without_writing(c10::Symbol op) {
    const auto found = all_in_place().find(op);
    return found == all_in_place().end() ? std::nullopt : std::optional(found->second);
}

void settle_in_place(FlatGraph& graph) {
    std::int32_t settled = 0;
    bool any_left = false;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        FlatNode& node = graph.nodes[i];
        if (node.is_in_place && is_private(graph, static_cast<std::int32_t>(i))) {
            node.is_in_place = false;
            ++settled;
        } else if (node.is_in_place) {
            node.op = node.node->kind();
            any_left = true;
        }
        graph.writes[i] -= settled;
    }
    if (!any_left) {
        return;
    }
    graph.by_op.clear();
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        graph.by_op[graph.nodes[i].op].push_back(static_cast<std::int32_t>(i));
    }
}

}  // namespace twinkle::runtime
