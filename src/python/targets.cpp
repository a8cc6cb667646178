// Targets of assignments: expressions first, checked and marked once it is known what they are.
#include "python/parser_impl.h"

namespace twinkle::python {
namespace {

std::string_view describe(const Expr& target) {
    switch (target.kind) {
        case NodeKind::Call: return "function call";
        case NodeKind::Constant: return "literal";
        case NodeKind::BinOp:
        case NodeKind::UnaryOp:
        case NodeKind::BoolOp: return "expression";
        case NodeKind::Compare: return "comparison";
        case NodeKind::Lambda: return "lambda";
        case NodeKind::IfExp: return "conditional expression";
        case NodeKind::JoinedStr: return "f-string expression";
        case NodeKind::NamedExpr: return "named expression";
        case NodeKind::Yield:
        case NodeKind::YieldFrom: return "yield expression";
        case NodeKind::Await: return "await expression";
        case NodeKind::GeneratorExp: return "generator expression";
        case NodeKind::ListComp: return "list comprehension";
        case NodeKind::SetComp: return "set comprehension";
        case NodeKind::DictComp: return "dict comprehension";
        case NodeKind::Dict: return "dict literal";
        case NodeKind::Set: return "set display";
        case NodeKind::Starred: return "starred";
        default: return "this expression";
    }
}

}  // namespace

void Parser::set_context(Expr& target, ExprContext context) {
    if (auto* name = as<Name>(target)) {
        name->ctx = context;
    } else if (auto* attribute = as<Attribute>(target)) {
        attribute->ctx = context;
    } else if (auto* subscript = as<Subscript>(target)) {
        subscript->ctx = context;
    } else if (auto* starred = as<Starred>(target); starred && context == ExprContext::Store) {
        starred->ctx = context;
        set_context(*starred->value, context);
    } else if (auto* tuple = as<Tuple>(target)) {
        tuple->ctx = context;
        for (auto& element : tuple->elts) set_context(*element, context);
    } else if (auto* list = as<List>(target)) {
        list->ctx = context;
        for (auto& element : list->elts) set_context(*element, context);
    } else {
        fail_target(target, context);
    }
}

void Parser::fail_target(const Expr& target, ExprContext context) const {
    fail(target.span,
         std::string(context == ExprContext::Del ? "cannot delete " : "cannot assign to ") +
             std::string(describe(target)));
}

// The targets of a for: up to `end`, which is left.
ExprPtr Parser::star_targets(Tok end) {
    const Mark begin = mark();
    const auto target = [&] { return at(Tok::Star) ? starred() : bitwise_or(); };
    ExprPtr first = target();
    if (at(Tok::Comma)) {
        auto node = std::make_unique<Tuple>();
        node->elts.push_back(std::move(first));
        while (accept(Tok::Comma) && !at(end)) {
            node->elts.push_back(target());
        }
        first = placed(std::move(node), begin);
    }
    set_context(*first, ExprContext::Store);
    return first;
}

}  // namespace twinkle::python
