#include "runtime/verify/double_reference.h"

#include "runtime/graph/dtype_rules.h"
#include "runtime/graph/graph_walk.h"
#include "runtime/verify/attention_masks.h"
#include "runtime/verify/grouped_products.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/inliner.h>

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
        auto* code = jit::tryToGraphFunction(function);
        if (code != nullptr && seen_.insert(&function).second) {
            block(code->graph()->block());
        }
    }
    void rewrite(const std::vector<jit::Function*>& functions) {
        for (jit::Function* function : functions) {
            rewrite(*function);
        }
    }

    void block(jit::Block* block) {
        std::vector<jit::Node*> grouped;
        std::vector<jit::Node*> masked;
        for (jit::Node* node : block->nodes()) {
            if (node->kind() == c10::prim::CallFunction) {
                rewrite(*node->input(0)->type()->expectRef<c10::FunctionType>().function());
            } else if (node->kind() == c10::prim::CallMethod) {
                method_of_class(node);
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
    // Rewrites methods of classes that are no modules.
    void method_of_class(const jit::Node* node) {
        const auto type = node->input(0)->type()->cast<c10::ClassType>();
        jit::Function* method =
            type != nullptr ? type->findMethod(node->s(c10::attr::name)) : nullptr;
        if (method != nullptr) {
            rewrite(*method);
        }
    }

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

void compute_in_double(const std::vector<jit::Module>& models) {
    Rewriter rewriter;
    for (const jit::Module& model : models) {
        for (const jit::Module& module : model.modules()) {
            rewriter.rewrite(module.type()->methods());
            rewriter.rewrite(module.type()->getForwardPreHooks());
            rewriter.rewrite(module.type()->getForwardHooks());
        }
    }
}

void compute_in_double(jit::Module& model) {
    compute_in_double(std::vector{model});
}

std::shared_ptr<jit::Graph> copied_in_double(jit::Graph& graph) {
    auto copy = graph.copy();
    jit::Inline(*copy);
    Rewriter().block(copy->block());
    return copy;
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
