#include "runtime/verify/rounded_results.h"

#include "runtime/convert/dtype_conversion.h"
#include "runtime/graph/graph_walk.h"
#include "runtime/verify/contestant.h"

#include <torch/csrc/jit/runtime/custom_operator.h>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// A mask's fill value, the lowest number of one dtype, becomes that of the other.
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

const jit::RegisterOperators rounding_registration({jit::Operator(
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

void round_results(jit::Module& model, at::ScalarType dtype) {
    for (const auto& graph : graphs_of(model)) {
        std::vector<jit::Node*> nodes;
        for_each_node_and_forked(graph->block(), [&](const jit::Node* node) {
            if (is_rounded(node)) {
                nodes.push_back(const_cast<jit::Node*>(node));
            }
        });
        for (jit::Node* node : nodes) {
            const jit::WithInsertPoint behind(node->next());
            jit::Graph& own = *node->owningGraph();  // a forked block is a graph of its own
            jit::Node* round = own.insertNode(
                own.create(c10::Symbol::fromQualString("twinkle::rounded"),
                           {node->output(), own.insertConstant(static_cast<std::int64_t>(dtype))}));
            round->output()->setType(c10::TensorType::get());
            node->output()->replaceAllUsesAfterNodeWith(round, round->output());
        }
    }
}

// Converts tensors to the dtypes of those in `like`.
c10::IValue in_dtypes_of(const c10::IValue& value, const c10::IValue& like) {
    if (value.isTensor() && like.isTensor()) {
        return value.toTensor().to(like.toTensor().scalar_type());
    }
    if (value.isTuple() && like.isTuple() &&
        value.toTupleRef().size() == like.toTupleRef().size()) {
        std::vector<c10::IValue> elements;
        for (std::size_t i = 0; i < value.toTupleRef().size(); ++i) {
            elements.push_back(
                in_dtypes_of(value.toTupleRef().elements()[i], like.toTupleRef().elements()[i]));
        }
        return c10::ivalue::Tuple::create(std::move(elements));
    }
    if (value.isTensorList() && like.isTensorList() &&
        value.toTensorList().size() == like.toTensorList().size()) {
        c10::List<at::Tensor> elements;
        for (std::size_t i = 0; i < value.toTensorList().size(); ++i) {
            elements.push_back(value.toTensorVector()[i].to(like.toTensorVector()[i].dtype()));
        }
        return elements;
    }
    if (value.isGenericDict() && like.isGenericDict()) {
        auto entries = value.toGenericDict().copy();
        for (const auto& entry : like.toGenericDict()) {
            if (const auto found = entries.find(entry.key()); found != entries.end()) {
                entries.insert_or_assign(entry.key(), in_dtypes_of(found->value(), entry.value()));
            }
        }
        return entries;
    }
    return value;
}

}  // namespace

void round_model(jit::Module& model, at::ScalarType dtype) {
    round_weights(model, dtype);
    round_results(model, dtype);
}

Yardstick rounded_yardstick(const jit::Module& rounded, const std::string& method,
                            const Inputs& inputs, const c10::IValue& result) {
    const auto own = weight_dtypes(rounded);
    const auto wide = [own](const Inputs& given) {
        return own.empty() ? given : with_dtype(given, *own.begin());
    };
    const auto run = [=](const Inputs& given) {
        return in_dtypes_of(run_seeded(rounded, method, wide(given)), result);
    };
    return {run(deep_copy(inputs)), wide(inputs), run, rounded};
}

}  // namespace twinkle::runtime
