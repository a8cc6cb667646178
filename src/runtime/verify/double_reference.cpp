#include "runtime/verify/double_reference.h"

#include "runtime/convert/dtype_rules.h"
#include "runtime/graph/graph_walk.h"
#include "runtime/verify/attention_masks.h"
#include "runtime/verify/grouped_products.h"

#include <torch/csrc/jit/ir/constants.h>

#include <string_view>
#include <unordered_set>
#include <vector>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

bool is_low_precision(std::int64_t dtype) {
    const auto type = static_cast<at::ScalarType>(dtype);
    return type == at::kFloat || type == at::kHalf || type == at::kBFloat16;
}

// Tensors that the model makes without naming a dtype. Random ones stay: others would come out.
bool makes_floats(const jit::Node* node) {
    return node->kind().is_aten() && makes_default_floats(node) &&
           !std::string_view(node->kind().toUnqualString()).starts_with("rand");
}

class Rewriter {
public:
    void rewrite(jit::Function& function) {
        if (seen_.insert(&function).second) {
            block(jit::toGraphFunction(function).graph()->block());
        }
    }

    void block(jit::Block* block) {
        std::vector<jit::Node*> grouped;
        std::vector<jit::Node*> masked;
        for (jit::Node* node : block->nodes()) {
            if (node->kind() == c10::prim::CallFunction) {
                rewrite(*node->input(0)->type()->expectRef<c10::FunctionType>().function());
            } else if (is_tensor_constant(node)) {
                tensor_constant(node);
            } else if (node->hasAttribute(c10::attr::Subgraph)) {
                this->block(node->g(c10::attr::Subgraph)->block());  // forked code
            } else if (is_grouped_product(node)) {
                grouped.push_back(node);
            } else if (is_masked_attention(node)) {
                masked.push_back(node);
            } else {
                dtype_arguments(node);
            }
            for (jit::Block* inner : node->blocks()) {
                this->block(inner);
            }
        }
        for (jit::Node* node : grouped) {
            take_double(node);
        }
        for (jit::Node* node : masked) {
            convert_mask(node);
        }
    }

private:
    void tensor_constant(jit::Node* node) {
        const at::Tensor tensor = node->t(c10::attr::value);
        if (tensor.is_floating_point()) {
            node->t_(c10::attr::value, tensor.to(at::kDouble));
        }
    }

    // An argument is a dtype only if the operator's schema says so; elsewhere the same integer is
    // not.
    void dtype_arguments(jit::Node* node) {
        const auto* schema = node->maybeSchema();
        if (schema == nullptr) {
            return;
        }
        for (std::size_t i = 0; i < schema->arguments().size() && i < node->inputs().size(); ++i) {
            if (schema->arguments()[i].name() != "dtype") {
                continue;
            }
            const auto constant = jit::toIValue(node->input(i));
            const bool low = constant && constant->isInt() && is_low_precision(constant->toInt());
            const bool by_default = constant && constant->isNone() && makes_floats(node);
            if (low || by_default) {
                jit::WithInsertPoint before(node);
                node->replaceInput(
                    i, node->owningGraph()->insertConstant(static_cast<std::int64_t>(at::kDouble)));
            }
        }
    }

    std::unordered_set<const jit::Function*> seen_;
};

}  // namespace

void compute_in_double(jit::Module& model) {
    Rewriter rewriter;
    for (const jit::Module& module : model.modules()) {
        for (jit::Function* method : module.type()->methods()) {
            rewriter.rewrite(*method);
        }
    }
}

void compute_in_double(jit::Graph& graph) {
    Rewriter().block(graph.block());
}

void hold_in_double(jit::Module& model) {
    const auto convert = [](const at::Tensor& tensor) {
        if (tensor.is_floating_point()) {
            tensor.set_data(tensor.to(at::kDouble));
        }
    };
    for (const at::Tensor& parameter : model.parameters()) {
        convert(parameter);
    }
    for (const at::Tensor& buffer : model.buffers()) {
        convert(buffer);
    }
}

}  // namespace twinkle::runtime
