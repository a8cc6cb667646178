#include "runtime/source/lowering_statements.h"

#include "python/walk.h"

#include <algorithm>
#include <string_view>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

namespace {

bool is_docstring(const py::Stmt& statement) {
    const auto* expression = py::as<py::ExprStmt>(statement);
    const auto* constant = expression ? py::as<py::Constant>(expression->value) : nullptr;
    return constant != nullptr && constant->string() != nullptr;
}

// Annotations are for readers: Python does not look at them. What LibTorch needs one for is None,
// an empty list and an empty dictionary.
bool needs_type(const py::Expr& value) {
    if (const auto* constant = py::as<py::Constant>(value)) {
        return constant->is_none();
    }
    if (const auto* list = py::as<py::List>(value)) {
        return list->elts.empty();
    }
    const auto* dict = py::as<py::Dict>(value);
    return dict != nullptr && dict->keys.empty();
}

bool is_optional(const py::Expr& annotation) {
    if (const auto* either = py::as<py::BinOp>(annotation)) {
        const auto is_none = [](const py::ExprPtr& one) {
            const auto* constant = py::as<py::Constant>(one);
            return constant != nullptr && constant->is_none();
        };
        return is_none(either->left) || is_none(either->right);
    }
    const auto* of = py::as<py::Subscript>(annotation);
    const auto* name = of ? py::as<py::Name>(of->value) : nullptr;
    const auto* member = of ? py::as<py::Attribute>(of->value) : nullptr;
    return (name != nullptr && name->id == "Optional") ||
           (member != nullptr && member->attr == "Optional");
}

}  // namespace

jit::Expr optional_tensor(const jit::SourceRange& range) {
    const auto name = [&](const char* text) {
        const auto source = std::make_shared<jit::Source>(text, "<types>", 1);
        const jit::SourceRange at(source, 0, std::string_view(text).size());
        return jit::Expr(jit::Var::create(at, jit::Ident::create(at, text)));
    };
    return jit::Subscript::create(range, name("Optional"),
                                  jit::List<jit::Expr>::create(range, {name("Tensor")}));
}

jit::List<jit::Stmt> Statements::block(const py::Block& body) {
    std::vector<jit::Stmt> statements;
    ++depth_;
    lower(body, statements);
    --depth_;
    const Range range = body.empty() ? Range(file_.source(), 0, 0) : file_.range(*body.front());
    return jit::List<jit::Stmt>::create(range, statements);
}

bool Statements::lower(const py::Block& body, std::vector<jit::Stmt>& out) {
    for (const py::StmtPtr& statement : body) {
        if (lower(*statement, out)) {
            return true;
        }
    }
    return false;
}

jit::List<jit::Stmt> Statements::body(const py::FunctionDef& function,
                                      std::vector<jit::Stmt> first) {
    const Range range = file_.range(function);
    std::vector<jit::Stmt> statements;
    lower(function.body, statements);
    if (scope_.names.no_grad) {
        const auto inner = jit::List<jit::Stmt>::create(range, statements);
        statements = {with_grad(false, range, inner)};
    }
    first.insert(first.end(), statements.begin(), statements.end());
    return jit::List<jit::Stmt>::create(range, first);
}

// Names that a statement binds have no known value any more; of a loop before it, since its body is
// run again.
void Statements::forget(const py::Node& statement) {
    py::walk(statement, [&](const py::Node& node) {
        if (const auto* name = py::as<py::Name>(node);
            name != nullptr && name->ctx != py::ExprContext::Load) {
            scope_.constants.erase(name->id);
        }
        return true;
    });
}

bool Statements::lower(const py::Stmt& statement, std::vector<jit::Stmt>& out) {
    file_.check(statement);
    const Range range = file_.range(statement);
    if (statement.kind == py::NodeKind::For || statement.kind == py::NodeKind::While) {
        forget(statement);
    }
    switch (statement.kind) {
        case py::NodeKind::Return: {
            const auto& node = *py::as<py::Return>(statement);
            out.push_back(jit::Return::create(
                range, node.value ? expression(*node.value)
                                  : jit::Expr(jit::Compound::create(jit::TK_NONE, range, {}))));
            return true;
        }
        case py::NodeKind::ExprStmt:
            if (!is_docstring(statement)) {
                out.push_back(jit::ExprStmt::create(
                    range, expression(*py::as<py::ExprStmt>(statement)->value)));
            }
            return false;
        case py::NodeKind::Assign:
            out.push_back(assign(*py::as<py::Assign>(statement), range));
            forget(statement);
            learn(*py::as<py::Assign>(statement));
            return false;
        case py::NodeKind::AnnAssign:
            out.push_back(annotated(*py::as<py::AnnAssign>(statement), range));
            forget(statement);
            return false;
        case py::NodeKind::AugAssign:
            out.push_back(augmented(*py::as<py::AugAssign>(statement), range));
            forget(statement);
            return false;
        case py::NodeKind::If: return condition(*py::as<py::If>(statement), out);
        case py::NodeKind::While: {
            const auto& node = *py::as<py::While>(statement);
            out.push_back(
                jit::While::create(range, lower_test(scope_, *node.test), block(node.body)));
            return false;
        }
        case py::NodeKind::For:
            out.push_back(for_loop(*py::as<py::For>(statement), range));
            return false;
        case py::NodeKind::With: return with(*py::as<py::With>(statement), out);
        case py::NodeKind::Raise:
            out.push_back(jit::Raise::create(range, message(*py::as<py::Raise>(statement)->exc)));
            return true;
        case py::NodeKind::Assert: {
            const auto& node = *py::as<py::Assert>(statement);
            out.push_back(jit::Assert::create(
                range, lower_test(scope_, *node.test),
                node.msg ? jit::Maybe<jit::Expr>::create(range, message(*node.msg))
                         : jit::Maybe<jit::Expr>::create(range)));
            return false;
        }
        case py::NodeKind::Pass: out.push_back(jit::Pass::create(range)); return false;
        case py::NodeKind::Break: out.push_back(jit::Break::create(range)); return true;
        case py::NodeKind::Continue: out.push_back(jit::Continue::create(range)); return true;
        // Their names are the scope's.
        case py::NodeKind::Import:
        case py::NodeKind::ImportFrom: return false;
        case py::NodeKind::Delete: {
            std::vector<jit::Expr> targets;
            forget(statement);
            for (const py::ExprPtr& target : py::as<py::Delete>(statement)->targets) {
                targets.push_back(expression(*target));
            }
            out.push_back(jit::Delete::create(range, jit::List<jit::Expr>::create(range, targets)));
            return false;
        }
        default: file_.refuse(statement, kernel::no_counterpart(statement));
    }
}

// Lowers only the branch that is taken if the condition is known while compiling.
bool Statements::condition(const py::If& node, std::vector<jit::Stmt>& out) {
    if (const auto holds = known_truth(scope_, *node.test)) {
        return lower(*holds ? node.body : node.orelse, out);
    }
    out.push_back(jit::If::create(file_.range(node), lower_test(scope_, *node.test),
                                  block(node.body), block(node.orelse)));
    return false;
}

jit::Stmt Statements::with_grad(bool enabled, const Range& range,
                                const jit::List<jit::Stmt>& body) {
    const auto made = jit::Apply::create(
        range,
        jit::Var::create(
            range, jit::Ident::create(range, enabled ? lowered_name::grad : lowered_name::no_grad)),
        jit::List<jit::Expr>::create(range, {}), jit::List<jit::Attribute>::create(range, {}));
    const auto item = jit::WithItem::create(range, made, jit::Maybe<jit::Var>::create(range));
    return jit::With::create(range, jit::List<jit::WithItem>::create(range, {item}), body);
}

bool Statements::with(const py::With& node, std::vector<jit::Stmt>& out) {
    using kernel::Context;
    const Range range = file_.range(node);
    std::vector<Context> contexts;
    for (const py::WithItem& item : node.items) {
        const Context context = scope_.names.context(*item.context_expr);
        if (context == Context::unknown || item.optional_vars) {
            file_.refuse(node,
                         "With has no counterpart in TorchScript, except with torch.no_grad()"
                         " and enable_grad()");
        }
        if (context != Context::none) {
            contexts.push_back(context);
        }
    }
    if (contexts.empty()) {
        return lower(node.body, out);
    }
    jit::List<jit::Stmt> body = block(node.body);
    for (auto context = contexts.rbegin(); context != contexts.rend(); ++context) {
        const jit::Stmt made = with_grad(*context == Context::enable_grad, range, body);
        body = jit::List<jit::Stmt>::create(range, {made});
    }
    out.push_back(body[0]);
    return false;
}

jit::Expr Statements::message(const py::Expr& expr) {
    scope_.in_message = true;
    const jit::Expr result = expression(expr);
    scope_.in_message = false;
    return result;
}

// A name that is bound outside of all blocks to a value that is known: its value is known until it
// is bound again.
void Statements::learn(const py::Assign& node) {
    if (node.targets.size() != 1) {
        return;
    }
    const auto* name = py::as<py::Name>(node.targets.front());
    if (name != nullptr && scope_.assigned[name->id] == 1) {
        scope_.sequences[name->id] = sequence_of(scope_, *node.value);
    }
    const auto value = depth_ == 0 ? known_value(scope_, *node.value) : std::nullopt;
    if (!value ||
        !(std::holds_alternative<py::None>(*value) || std::holds_alternative<bool>(*value) ||
          std::holds_alternative<std::string>(*value))) {
        return;
    }
    if (name != nullptr) {
        scope_.constants[name->id] = *value;
    } else if (const auto* attribute = py::as<py::Attribute>(node.targets.front())) {
        // ctx.flag = False, and nowhere else
        const auto* owner = py::as<py::Name>(attribute->value);
        auto* stored = scope_.names.stored;
        const auto count = scope_.stores.find(attribute->attr);
        if (stored != nullptr && owner != nullptr && owner->id == stored->ctx &&
            count != scope_.stores.end() && count->second == 1) {
            stored->known[attribute->attr] = *value;
        }
    }
}

jit::Stmt Statements::plain_assign(const py::Expr& target, const jit::Expr& value,
                                   const Range& range, const std::string& type) {
    return jit::Assign::create(range, jit::List<jit::Expr>::create(range, {expression(target)}),
                               jit::Maybe<jit::Expr>::create(range, value),
                               type.empty()
                                   ? jit::Maybe<jit::Expr>::create(range)
                                   : jit::Maybe<jit::Expr>::create(range, type_reference(type)));
}

jit::Stmt Statements::assign(const py::Assign& node, const Range& range) {
    const auto* name = node.targets.size() == 1 ? py::as<py::Name>(node.targets.front()) : nullptr;
    const auto* constant = py::as<py::Constant>(node.value);
    if (name != nullptr && constant != nullptr && constant->is_none() &&
        scope_.assigned[name->id] > 1 && scope_.bound.insert(name->id).second) {
        // What else it is bound to can only be a tensor, or is refused.
        return jit::Assign::create(range, jit::List<jit::Expr>::create(range, {expression(*name)}),
                                   jit::Maybe<jit::Expr>::create(range, expression(*node.value)),
                                   jit::Maybe<jit::Expr>::create(range, optional_tensor(range)));
    }
    const jit::Expr value = assigned_value(node);
    std::vector<jit::Expr> targets;
    for (const py::ExprPtr& target : node.targets) {
        targets.push_back(expression(*target));
        py::walk(*target, [&](const py::Node& part) {
            if (const auto* bound = py::as<py::Name>(part)) {
                scope_.bound.insert(bound->id);
            }
            return true;
        });
    }
    return jit::Assign::create(range, jit::List<jit::Expr>::create(range, targets),
                               jit::Maybe<jit::Expr>::create(range, value),
                               jit::Maybe<jit::Expr>::create(range));
}

jit::Expr Statements::assigned_value(const py::Assign& node) {
    const auto* tuple = py::as<py::Tuple>(node.targets.front());
    const auto* list = py::as<py::List>(node.targets.front());
    if (node.targets.size() == 1 && (tuple != nullptr || list != nullptr)) {
        const auto& targets = tuple ? tuple->elts : list->elts;
        const bool stars = std::any_of(targets.begin(), targets.end(), [](const py::ExprPtr& one) {
            return py::as<py::Starred>(one) != nullptr;
        });
        const auto each =
            stars ? std::nullopt : lower_written_out(scope_, *node.value, targets.size());
        if (each) {
            return *each;
        }
    }
    return expression(*node.value);
}

jit::Stmt Statements::annotated(const py::AnnAssign& node, const Range& range) {
    if (!node.value) {
        return jit::Pass::create(range);
    }
    std::string type;
    const auto* name = py::as<py::Name>(node.target);
    const bool first = name != nullptr && scope_.bound.insert(name->id).second;
    if (!first) {
        return plain_assign(*node.target, expression(*node.value), range, type);
    }
    if (needs_type(*node.value) || is_optional(*node.annotation)) {
        type = scope_.names.annotation(*node.annotation);
        if (type.empty()) {
            file_.refuse(*node.annotation, "an annotation that is no type of TorchScript");
        }
    }
    return plain_assign(*node.target, expression(*node.value), range, type);
}

jit::Stmt Statements::augmented(const py::AugAssign& node, const Range& range) {
    int kind = 0;
    switch (node.op) {
        case py::Operator::Add: kind = '+'; break;
        case py::Operator::Sub: kind = '-'; break;
        case py::Operator::Mult: kind = '*'; break;
        case py::Operator::Div: kind = '/'; break;
        case py::Operator::Mod: kind = '%'; break;
        case py::Operator::Pow: kind = jit::TK_POW; break;
        case py::Operator::LShift: kind = jit::TK_LSHIFT; break;
        case py::Operator::RShift: kind = jit::TK_RSHIFT; break;
        case py::Operator::BitOr: kind = '|'; break;
        case py::Operator::BitXor: kind = '^'; break;
        case py::Operator::BitAnd: kind = '&'; break;
        case py::Operator::MatMult:
        case py::Operator::FloorDiv: {
            const auto* name = py::as<py::Name>(node.target);
            // LibTorch has no such assignment; numbers and texts are values, and @= makes a tensor.
            const int binary = node.op == py::Operator::MatMult ? int('@') : int(jit::TK_FLOOR_DIV);
            const jit::Expr before = jit::Var::create(range, jit::Ident::create(range, name->id));
            return plain_assign(*name,
                                jit::BinOp::create(range, binary, before, expression(*node.value)),
                                range, "");
        }
    }
    return jit::AugAssign::create(range, expression(*node.target),
                                  jit::AugAssignKind(jit::Compound::create(kind, range, {})),
                                  expression(*node.value));
}

jit::Stmt Statements::for_loop(const py::For& node, const Range& range) {
    std::vector<jit::Expr> targets;
    if (const auto* tuple = py::as<py::Tuple>(node.target)) {
        for (const py::ExprPtr& target : tuple->elts) {
            targets.push_back(expression(*target));
        }
    } else {
        targets.push_back(expression(*node.target));
    }
    return jit::For::create(range, jit::List<jit::Expr>::create(range, targets),
                            jit::List<jit::Expr>::create(range, {expression(*node.iter)}),
                            block(node.body));
}

jit::Stmt Statements::assignment(const py::Node& at, const std::string& name,
                                 const jit::Expr& value, const std::optional<jit::Expr>& type) {
    const Range range = file_.range(at);
    const jit::Expr target = jit::Var::create(range, jit::Ident::create(range, name));
    return jit::Assign::create(
        range, jit::List<jit::Expr>::create(range, {target}),
        jit::Maybe<jit::Expr>::create(range, value),
        type ? jit::Maybe<jit::Expr>::create(range, *type) : jit::Maybe<jit::Expr>::create(range));
}

}  // namespace twinkle::runtime
