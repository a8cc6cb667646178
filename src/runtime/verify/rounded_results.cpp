#include "runtime/verify/rounded_results.h"

#include "runtime/model/graph_walk.h"

#include <torch/csrc/jit/runtime/custom_operator.h>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// What masks is the lowest number of the one dtype, and stands for that of the other.
at::Tensor rounded(const at::Tensor& tensor, at::ScalarType dtype) {
    if (!tensor.defined() || !tensor.is_floating_point()) {
        return tensor;
    }
    const at::Tensor there = tensor.to(dtype);
    const at::Tensor back = there.to(tensor.scalar_type());
    const double most = dtype == at::kHalf       ? 65504.0
                        : dtype == at::kBFloat16 ? 0x1.FEp127
                                                 : 0x1.FFFFFEp127;
    return at::where(back.isinf(), at::where(tensor.isinf(), tensor, tensor.clamp(-most, most)),
                     back);
}

const jit::RegisterOperators registration({jit::Operator(
    "twinkle::rounded(Tensor x, int dtype) -> Tensor",
    [](jit::Stack& stack) {
        const auto dtype = static_cast<at::ScalarType>(jit::pop(stack).toInt());
        const at::Tensor tensor = jit::pop(stack).toTensor();
        jit::push(stack, rounded(tensor, dtype));
    },
    c10::AliasAnalysisKind::CONSERVATIVE)});

bool is_rounded(const jit::Node* node) {
    const std::string_view name = node->kind().toUnqualString();
    return node->kind().is_aten() && (!name.ends_with('_') || name.ends_with("__")) &&
           node->outputs().size() == 1 &&
           node->output()->type()->kind() == c10::TypeKind::TensorType &&
           node->kind() != c10::aten::to;
}

}  // namespace

void round_results(jit::Module& model, at::ScalarType dtype) {
    for (const auto& graph : graphs_of(model)) {
        std::vector<jit::Node*> nodes;
        for_each_node(graph->block(), [&](const jit::Node* node) {
            if (is_rounded(node)) {
                nodes.push_back(const_cast<jit::Node*>(node));
            }
        });
        for (jit::Node* node : nodes) {
            const jit::WithInsertPoint behind(node->next());
            jit::Node* round = graph->insertNode(graph->create(
                c10::Symbol::fromQualString("twinkle::rounded"),
                {node->output(), graph->insertConstant(static_cast<std::int64_t>(dtype))}));
            round->output()->setType(c10::TensorType::get());
            node->output()->replaceAllUsesAfterNodeWith(round, round->output());
        }
    }
}

}  // namespace twinkle::runtime
