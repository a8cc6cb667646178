#include "runtime/patterns/original_function.h"
#include "runtime/graph/format.h"

#include "runtime/graph/class_name.h"
#include "runtime/patterns/flat_rules.h"
#include "runtime/patterns/in_place.h"

#include <torch/csrc/jit/ir/ir.h>

#include <unordered_map>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

class OriginalBuilder {
public:
    OriginalBuilder(const FlatGraph& graph, const PatternSite& site) : graph_(graph), site_(site) {}

    // Null: `problem` says why.
    std::shared_ptr<jit::Graph> build() {
        const auto& parameters = site_.match.parameters;
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const FormulaParameter& parameter = site_.formula->parameters[i];
            jit::Value* input = made_->addInput(parameter.name)->setType(parameter.type);
            if (!parameters[i].constant && parameters[i].use.value != nothing) {
                values_.emplace(parameters[i].use.value, input);
            }
        }
        for (const std::int32_t index : site_.match.nodes) {
            const FlatNode& node = graph_.node(index);
            if (copy(node.node, node.frame, 0) == nullptr) {
                return nullptr;
            }
        }
        std::vector<jit::Value*> results;
        for (const ValueId id : site_.match.results) {
            results.push_back(values_.at(id));
        }
        made_->registerOutput(results.size() == 1
                                  ? results[0]
                                  : made_->insertNode(made_->createTuple(results))->output());
        return made_;
    }

    std::string problem;

private:
    static constexpr int deepest = 50;

    jit::Node* copy(jit::Node* node, std::int32_t frame, int depth) {
        if (depth > deepest) {
            problem = "what it reads is made of too much";
            return nullptr;
        }
        std::unordered_map<jit::Value*, jit::Value*> inputs;
        for (jit::Value* input : node->inputs()) {
            jit::Value* known = value_of(input, frame, depth);
            if (known == nullptr) {
                return nullptr;
            }
            inputs[input] = converted(known, *input->type());
        }
        jit::Node* clone = made_->insertNode(
            made_->createClone(node, [&](jit::Value* input) { return inputs.at(input); }));
        clone = into_new(clone);
        for (std::size_t i = 0; i < node->outputs().size(); ++i) {
            const ValueId id = graph_.value_in(frame, node->outputs()[i]);
            if (id != nothing) {
                values_.emplace(id, clone->outputs()[i]);
            }
        }
        return clone;
    }

    // What the model writes in place where nobody sees it: here it might be an argument.
    jit::Node* into_new(jit::Node* node) {
        if (const auto plain = without_writing(node->kind())) {
            jit::Node* made = made_->insertNode(made_->create(*plain, node->inputs()));
            made->output()->copyMetadata(node->output());
            made->setSourceRange(node->sourceRange());
            node->destroy();
            return made;
        }
        const auto type = node->kind() == c10::prim::CallFunction
                              ? node->input(0)->type()->cast<c10::FunctionType>()
                              : nullptr;
        const auto* known_as =
            type == nullptr
                ? nullptr
                : functional_operator(unmangled(type->function()->qualname().qualifiedName()));
        if (known_as != nullptr && known_as->in_place) {
            const jit::WithInsertPoint before(node);
            node->replaceInput(*known_as->in_place + 1, made_->insertConstant(false));
        }
        return node;
    }

    // A number that a trace keeps as a tensor.
    jit::Value* converted(jit::Value* value, const c10::Type& wanted) {
        const bool is_tensor = value->type()->kind() == c10::TypeKind::TensorType;
        if (wanted.kind() == c10::TypeKind::TensorType &&
            value->type()->kind() == c10::TypeKind::IntType) {
            return made_->insertNode(made_->createNumToTensor(value))->output();
        }
        return wanted.kind() == c10::TypeKind::IntType && is_tensor
                   ? made_->insert(c10::aten::Int, {value})
                   : value;
    }

    jit::Value* value_of(jit::Value* value, std::int32_t frame, int depth) {
        const ValueId id = graph_.value_in(frame, value);
        if (id != nothing) {
            if (const auto known = values_.find(id); known != values_.end()) {
                return known->second;
            }
            if (const c10::IValue* constant = graph_.constant_of(id)) {
                jit::Node* origin = graph_.value(id).from->node();
                return origin->kind() == c10::prim::Constant
                           ? made_
                                 ->insertNode(
                                     made_->createClone(origin, [](jit::Value* v) { return v; }))
                                 ->output()
                           : made_->insertConstant(*constant);
            }
        }
        jit::Node* node = value->node();
        if (value->type()->cast<c10::FunctionType>() != nullptr) {
            return made_->insertNode(made_->createClone(node, [](jit::Value* v) { return v; }))
                ->output();
        }
        if (node->kind() == c10::prim::Param) {
            return of_caller(value, frame, depth);
        }
        const bool plain = node->blocks().empty() && node->kind() != c10::prim::GetAttr &&
                           node->kind() != c10::prim::CallMethod;
        if (!plain) {
            problem = fmt::format("it reads what {} gives, which is no parameter of the formula",
                                  node->kind().toQualString());
            return nullptr;
        }
        jit::Node* clone = copy(node, frame, depth + 1);
        return clone == nullptr ? nullptr : clone->outputs()[value->offset()];
    }

    jit::Value* of_caller(const jit::Value* value, std::int32_t frame, int depth) {
        const Frame& inner = graph_.frame(frame);
        if (frame == site_.frame || inner.call == nullptr) {
            problem = "it reads an argument of the method that is no parameter of the formula";
            return nullptr;
        }
        const std::size_t first = inner.call->kind() == c10::prim::CallFunction ? 1 : 0;
        return value_of(inner.call->input(value->offset() + first), inner.parent, depth + 1);
    }

    const FlatGraph& graph_;
    const PatternSite& site_;
    std::shared_ptr<jit::Graph> made_ = std::make_shared<jit::Graph>();
    std::unordered_map<ValueId, jit::Value*> values_;
};

}  // namespace

tl::expected<jit::Function*, std::string> original_of(const FlatGraph& graph,
                                                      const PatternSite& site,
                                                      jit::CompilationUnit& unit,
                                                      const c10::QualifiedName& name) {
    OriginalBuilder builder(graph, site);
    const auto body = builder.build();
    if (body == nullptr) {
        return tl::make_unexpected(builder.problem);
    }
    return unit.create_function(unit.mangle(name), body);
}

}  // namespace twinkle::runtime
