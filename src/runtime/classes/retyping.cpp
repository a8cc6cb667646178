#include "runtime/classes/retyping.h"

#include <torch/csrc/jit/ir/constants.h>

#include <unordered_map>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

class Retyper {
public:
    Retyper(jit::Graph& graph, const HookClones& hooks) : graph_(graph), hooks_(hooks) {}

    std::optional<RetypingProblem> run() {
        block(graph_.block());
        for (const jit::Value* output : graph_.outputs()) {
            if (changed(output)) {
                refuse(output, "a method of the model returns it");
            }
        }
        return std::move(problem_);
    }

    void set_type(jit::Value* value, const c10::TypePtr& type) {
        if (*value->type() != *type) {
            before_.emplace(value, value->type());
            value->setType(type);
        }
    }

private:
    bool changed(const jit::Value* value) const { return before_.contains(value); }

    void refuse(const jit::Value* value, const std::string& because) {
        const auto was = before_.find(value);
        const auto type = was == before_.end() ? value->type() : was->second;
        if (!problem_) {
            problem_ = RetypingProblem{type->cast<c10::ClassType>(), because};
        }
    }

    void block(jit::Block* block) {
        for (jit::Node* node : block->nodes()) {
            if (problem_) {
                return;
            }
            this->node(node);
        }
    }

    void node(jit::Node* node) {
        if (node->kind() == c10::prim::GetAttr) {
            get_attribute(node);
            return;
        }
        bool any = false;
        for (const jit::Value* input : node->inputs()) {
            any = any || changed(input);
        }
        if (node->hasAttribute(c10::attr::Subgraph)) {
            subgraph(node);
        } else if (any) {
            consumer(node);
        }
        for (jit::Block* inner : node->blocks()) {
            block(inner);
        }
        if (node->kind() == c10::prim::If) {
            join(node);
        } else if (node->kind() == c10::prim::Loop) {
            for (const jit::Value* output : node->blocks()[0]->outputs()) {
                if (changed(output)) {
                    refuse(output, "a loop of the model puts it in the place of another instance");
                }
            }
        }
    }

    void get_attribute(jit::Node* node) {
        if (const auto type = node->input()->type()->cast<c10::ClassType>()) {
            const auto attribute = type->findAttribute(node->s(c10::attr::name));
            if (attribute && attribute->is_module()) {
                set_type(node->output(), attribute);
            }
        }
    }

    void consumer(jit::Node* node) {
        switch (node->kind()) {
            case c10::prim::CallMethod: return call_method(node);
            case c10::prim::CallFunction: return call_function(node);
            case c10::prim::TupleConstruct: return construct_tuple(node);
            case c10::prim::TupleUnpack: return unpack_tuple(node);
            case c10::prim::TupleIndex: return index_tuple(node);
            case c10::prim::SetAttr:
                if (changed(node->input(1))) {
                    refuse(node->input(1), "the model assigns it to an attribute");
                }
                return;
            default: return other(node);
        }
    }

    void check_arguments(const jit::Node* node, const c10::FunctionSchema& schema,
                         std::size_t first_input, std::size_t skipped) {
        for (std::size_t i = skipped; i < schema.arguments().size(); ++i) {
            const jit::Value* input = node->input(first_input + i);
            if (changed(input) && !input->type()->isSubtypeOf(*schema.arguments()[i].type())) {
                refuse(input, "the model passes it to " + schema.name() +
                                  ", which takes instances of its class");
            }
        }
    }

    void call_method(const jit::Node* node) {
        const auto type = node->input(0)->type()->cast<c10::ClassType>();
        const auto* method = type ? type->findMethod(node->s(c10::attr::name)) : nullptr;
        if (method != nullptr) {
            check_arguments(node, method->getSchema(), 0, 1);
        }
    }

    // Hooks are functions of their class.
    void call_function(jit::Node* node) {
        auto* function = node->input(0)->type()->expectRef<c10::FunctionType>().function();
        const auto type =
            node->inputs().size() > 1 ? node->input(1)->type()->cast<c10::ClassType>() : nullptr;
        const auto clone = hooks_.find({function, type.get()});
        if (clone == hooks_.end()) {
            return check_arguments(node, function->getSchema(), 1, 0);
        }
        jit::Node* constant = graph_.create(c10::prim::Constant);
        constant->s_(c10::attr::name, clone->second->name());
        constant->output()->setType(c10::FunctionType::create(clone->second));
        constant->insertBefore(node);
        node->replaceInput(0, constant->output());
        check_arguments(node, clone->second->getSchema(), 1, 1);
    }

    void construct_tuple(jit::Node* node) {
        if (node->output()->type()->expectRef<c10::TupleType>().schema() != nullptr) {
            return other(node);
        }
        std::vector<c10::TypePtr> types;
        for (const jit::Value* input : node->inputs()) {
            types.push_back(input->type());
        }
        set_type(node->output(), c10::TupleType::create(std::move(types)));
    }

    void unpack_tuple(jit::Node* node) {
        const auto tuple = node->input()->type()->expect<c10::TupleType>();
        for (std::size_t i = 0; i < node->outputs().size(); ++i) {
            set_type(node->outputs()[i], tuple->elements()[i]);
        }
    }

    void index_tuple(jit::Node* node) {
        const auto index = jit::toIValue(node->input(1));
        const auto tuple = node->input(0)->type()->expect<c10::TupleType>();
        if (!index || !index->isInt()) {
            return other(node);
        }
        const auto count = static_cast<std::int64_t>(tuple->elements().size());
        const auto at = index->toInt() < 0 ? index->toInt() + count : index->toInt();
        set_type(node->output(), tuple->elements().at(static_cast<std::size_t>(at)));
    }

    // Copies of a graph share the graphs inside of its nodes.
    void subgraph(jit::Node* node) {
        auto inner = node->g(c10::attr::Subgraph)->copy();
        Retyper retyper(*inner, hooks_);
        for (std::size_t i = 0; i < inner->inputs().size() && i < node->inputs().size(); ++i) {
            if (changed(node->input(i))) {
                retyper.set_type(inner->inputs()[i], node->input(i)->type());
            }
        }
        problem_ = retyper.run();
        node->g_(c10::attr::Subgraph, std::move(inner));
    }

    void join(jit::Node* node) {
        for (std::size_t i = 0; i < node->outputs().size() && !problem_; ++i) {
            const jit::Value* one = node->blocks()[0]->outputs()[i];
            const jit::Value* other = node->blocks()[1]->outputs()[i];
            if (!changed(one) && !changed(other)) {
                continue;
            }
            if (*one->type() != *other->type()) {
                refuse(changed(one) ? one : other,
                       "the model chooses between it and another instance of its class");
            } else {
                set_type(node->outputs()[i], one->type());
            }
        }
    }

    // What takes anything takes an instance of another class as well.
    void other(const jit::Node* node) {
        const auto* schema = node->maybeSchema();
        for (std::size_t i = 0; i < node->inputs().size(); ++i) {
            const bool takes_anything =
                (schema != nullptr && i < schema->arguments().size() &&
                 schema->arguments()[i].type()->kind() == c10::TypeKind::AnyType) ||
                node->kind() == c10::prim::ModuleContainerIndex;
            if (changed(node->input(i)) && !takes_anything) {
                refuse(node->input(i),
                       std::string("the model uses it in ") + node->kind().toQualString());
            }
        }
    }

    jit::Graph& graph_;
    const HookClones& hooks_;
    std::unordered_map<const jit::Value*, c10::TypePtr> before_;
    std::optional<RetypingProblem> problem_;
};

}  // namespace

std::optional<RetypingProblem> retype(jit::Graph& graph, const c10::ClassTypePtr& self,
                                      const HookClones& hooks) {
    Retyper retyper(graph, hooks);
    if (!graph.inputs().empty()) {
        retyper.set_type(graph.inputs()[0], self);
    }
    return retyper.run();
}

}  // namespace twinkle::runtime
