#include "runtime/source/autograd_context.h"

#include "runtime/autograd/autograd_apply.h"

#include <map>
#include <set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using Value = std::shared_ptr<jit::SugaredValue>;

// The methods of ctx, by the attribute that keeps what they are told.
const std::map<std::string, const char*>& context_methods() {
    static const std::map<std::string, const char*> methods = {
        {"save_for_backward", context_attribute::saved_tensors},
        {"mark_non_differentiable", context_attribute::non_differentiable},
        {"mark_dirty", context_attribute::dirty},
        {"set_materialize_grads", context_attribute::materialize_grads}};
    return methods;
}

void store(const jit::SourceRange& loc, jit::GraphFunction& m, jit::Value* object,
           const std::string& field, jit::Value* value) {
    const auto type = object->type()->expect<c10::ClassType>();
    const c10::TypePtr given = c10::unshapedType(value->type());
    if (!type->hasAttribute(field)) {
        type->addAttribute(field, given);
    } else if (!given->isSubtypeOf(*type->getAttribute(field))) {
        throw(jit::ErrorReport(loc)
              << "ctx." << field << " is stored as " << type->getAttribute(field)->repr_str()
              << " and as " << given->repr_str());
    }
    m.graph()->insertNode(m.graph()->createSetAttr(object, field, value))->setSourceRange(loc);
}

struct ContextMethod : jit::SugaredValue {
    ContextMethod(jit::Value* ctx, std::string method) : object(ctx), name(std::move(method)) {}
    std::string kind() const override { return "ctx." + name; }

    Value call(const jit::SourceRange& loc, jit::GraphFunction& m,
               at::ArrayRef<jit::NamedValue> args, at::ArrayRef<jit::NamedValue> kwargs,
               size_t) override {
        jit::Graph& graph = *m.graph();
        const std::string attribute = context_methods().at(name);
        if (attribute == context_attribute::materialize_grads) {
            const jit::NamedValue* one = args.size() == 1     ? &args[0]
                                         : kwargs.size() == 1 ? &kwargs[0]
                                                              : nullptr;
            if (one == nullptr) {
                throw(jit::ErrorReport(loc) << "set_materialize_grads takes one value");
            }
            store(loc, m, object, attribute, one->value(graph));
        } else {
            if (!kwargs.empty()) {
                throw(jit::ErrorReport(loc) << "ctx." << name << " takes no named values");
            }
            std::vector<jit::Value*> values;
            for (const jit::NamedValue& argument : args) {
                values.push_back(argument.value(graph));
                require_tensor(loc, *values.back());
            }
            store(loc, m, object, attribute, graph.insertNode(graph.createTuple(values))->output());
        }
        return std::make_shared<jit::SimpleValue>(graph.insertConstant(c10::IValue(), loc));
    }

    void require_tensor(const jit::SourceRange& loc, const jit::Value& value) const {
        const auto optional = c10::OptionalType::create(c10::TensorType::get());
        if (!value.type()->isSubtypeOf(*optional)) {
            throw(jit::ErrorReport(loc)
                  << "ctx." << name << " takes tensors, not " << value.type()->repr_str());
        }
    }

    jit::Value* object;
    std::string name;
};

struct ContextValue : jit::SugaredValue {
    ContextValue(jit::Value* ctx, c10::ClassTypePtr class_type, std::size_t arguments)
        : object(ctx), type(std::move(class_type)), argument_count(arguments) {}
    std::string kind() const override { return "ctx"; }
    jit::Value* asValue(const jit::SourceRange&, jit::GraphFunction&) override { return object; }

    bool hasAttr(const jit::SourceRange&, jit::GraphFunction&, const std::string& field) override {
        return type->hasAttribute(field) || context_methods().contains(field) ||
               field == context_attribute::needs_input_grad;
    }

    Value attr(const jit::SourceRange& loc, jit::GraphFunction& m,
               const std::string& field) override {
        if (context_methods().contains(field)) {
            return std::make_shared<ContextMethod>(object, field);
        }
        if (field == context_attribute::needs_input_grad && !type->hasAttribute(field)) {
            type->addAttribute(field, c10::TupleType::create(std::vector<c10::TypePtr>(
                                          argument_count, c10::BoolType::get())));
        }
        if (!type->hasAttribute(field)) {
            throw(jit::ErrorReport(loc) << "forward stores nothing as ctx." << field);
        }
        jit::Value* got = m.graph()->insertGetAttr(object, field);
        got->node()->setSourceRange(loc);
        return std::make_shared<jit::SimpleValue>(got);
    }

    void setAttr(const jit::SourceRange& loc, jit::GraphFunction& m, const std::string& field,
                 jit::Value* value) override {
        store(loc, m, object, field, value);
    }

    jit::Value* object;
    c10::ClassTypePtr type;
    std::size_t argument_count;
};

// The name of an attribute of ctx, where the tree is one.
std::optional<std::string> attribute_of(const jit::TreeRef& tree, const std::string& ctx) {
    if (tree->kind() != '.') {
        return std::nullopt;
    }
    const jit::Select select(tree);
    if (select.value().kind() != jit::TK_VAR || jit::Var(select.value()).name().name() != ctx) {
        return std::nullopt;
    }
    return select.selector().name();
}

class ContextRemover {
public:
    ContextRemover(std::string name, std::size_t arguments)
        : ctx_(std::move(name)), argument_count_(arguments) {}

    std::optional<jit::Def> remove(const jit::Def& forward) {
        collect_reads(forward.statements().tree());
        std::vector<jit::Param> params;
        for (const jit::Param& param : forward.decl().params()) {
            if (param.ident().name() != ctx_) {
                params.push_back(param);
            }
        }
        const auto body = jit::List<jit::Stmt>(rewritten(forward.statements().tree()));
        if (used_as_value_) {
            return std::nullopt;
        }
        const auto decl = jit::Decl::create(forward.decl().range(),
                                            jit::List<jit::Param>::create(forward.range(), params),
                                            forward.decl().return_type());
        return jit::Def::create(forward.range(), forward.name(), decl, body);
    }

private:
    // Attributes that are read again in forward itself.
    void collect_reads(const jit::TreeRef& tree) {
        if (const auto name = attribute_of(tree, ctx_)) {
            read_.insert(*name);
        } else if (is_plain_store(tree)) {
            collect_reads(tree->trees()[1]);
        } else {
            for (const jit::TreeRef& part : tree->trees()) {
                collect_reads(part);
            }
        }
    }

    // ctx.name = value
    bool is_plain_store(const jit::TreeRef& tree) const {
        return tree->kind() == jit::TK_ASSIGN && tree->trees()[0]->trees().size() == 1 &&
               attribute_of(tree->trees()[0]->trees()[0], ctx_);
    }

    jit::TreeRef rewritten(const jit::TreeRef& tree) {
        if (is_plain_store(tree) &&
            !read_.contains(*attribute_of(tree->trees()[0]->trees()[0], ctx_))) {
            const auto value = jit::Assign(tree).rhs();
            return jit::ExprStmt::create(tree->range(), jit::Expr(rewritten(value.get().tree())))
                .tree();
        }
        if (tree->kind() == jit::TK_EXPR_STMT) {
            if (const auto told = arguments_of_context_method(jit::ExprStmt(tree).expr().tree())) {
                return jit::ExprStmt::create(tree->range(), *told).tree();
            }
        }
        if (const auto name = attribute_of(tree, ctx_)) {
            return *name == context_attribute::needs_input_grad ? nothing_needed(tree->range())
                                                                : local(tree->range(), *name);
        }
        if (tree->kind() == jit::TK_VAR && jit::Var(tree).name().name() == ctx_) {
            used_as_value_ = true;
        }
        return tree->map([&](const jit::TreeRef& part) { return rewritten(part); });
    }

    std::optional<jit::Expr> arguments_of_context_method(const jit::TreeRef& tree) {
        if (tree->kind() != jit::TK_APPLY) {
            return std::nullopt;
        }
        const jit::Apply call(tree);
        const auto method = attribute_of(call.callee().tree(), ctx_);
        if (!method || !context_methods().contains(*method)) {
            return std::nullopt;
        }
        return jit::TupleLiteral::create(tree->range(),
                                         jit::List<jit::Expr>(rewritten(call.inputs().tree())));
    }

    jit::TreeRef nothing_needed(const jit::SourceRange& range) const {
        const std::vector<jit::Expr> no(argument_count_,
                                        jit::Expr(jit::Compound::create(jit::TK_FALSE, range, {})));
        return jit::TupleLiteral::create(range, jit::List<jit::Expr>::create(range, no)).tree();
    }

    static jit::TreeRef local(const jit::SourceRange& range, const std::string& name) {
        return jit::Var::create(range, jit::Ident::create(range, "_twinkle_ctx_" + name)).tree();
    }

    std::string ctx_;
    std::size_t argument_count_;
    std::set<std::string> read_;
    bool used_as_value_ = false;
};

}  // namespace

Value ContextSelf::makeSugared(jit::Value* v) const {
    v->setType(type);
    return std::make_shared<ContextValue>(v, type, argument_count);
}

std::optional<jit::Def> without_context(const jit::Def& forward, const std::string& ctx,
                                        std::size_t argument_count) {
    return ContextRemover(ctx, argument_count).remove(forward);
}

}  // namespace twinkle::runtime
