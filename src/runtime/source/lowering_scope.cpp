#include "runtime/source/lowering_scope.h"

#include "python/walk.h"

namespace twinkle::runtime {

namespace py = twinkle::python;

namespace {

using Constant = py::ConstantValue;

bool is_empty_keywords(const FunctionScope& scope, const py::Expr& expr) {
    const auto* name = py::as<py::Name>(expr);
    return name != nullptr && !name->id.empty() &&
           (name->id == scope.no_keywords ||
            (name->id == scope.no_arguments && scope.rest.empty()));
}

bool is_rest(const FunctionScope& scope, const py::Expr& expr) {
    const auto* name = py::as<py::Name>(expr);
    return name != nullptr && !scope.rest.empty() && name->id == scope.no_arguments;
}

// ctx.name
const py::Attribute* member_of(const py::Node& node, const std::string& owner) {
    const auto* attribute = py::as<py::Attribute>(node);
    const auto* name = attribute ? py::as<py::Name>(attribute->value) : nullptr;
    return name != nullptr && !owner.empty() && name->id == owner ? attribute : nullptr;
}

std::optional<bool> truth_of(const Constant& value) {
    if (std::holds_alternative<py::None>(value)) {
        return false;
    }
    if (const auto* flag = std::get_if<bool>(&value)) {
        return *flag;
    }
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
        return *number != 0;
    }
    if (const auto* text = std::get_if<std::string>(&value)) {
        return !text->empty();
    }
    return std::nullopt;
}

// Equality of None, flags, integers and texts. Others: not known.
std::optional<bool> equal(const Constant& a, const Constant& b) {
    const auto comparable = [](const Constant& one) {
        return std::holds_alternative<py::None>(one) || std::holds_alternative<std::string>(one) ||
               std::holds_alternative<bool>(one) || std::holds_alternative<std::int64_t>(one);
    };
    if (!comparable(a) || !comparable(b)) {
        return std::nullopt;
    }
    const auto number = [](const Constant& one) -> std::optional<std::int64_t> {
        if (const auto* flag = std::get_if<bool>(&one)) {
            return *flag ? 1 : 0;
        }
        const auto* integer = std::get_if<std::int64_t>(&one);
        return integer ? std::optional(*integer) : std::nullopt;
    };
    if (number(a) && number(b)) {
        return *number(a) == *number(b);
    }
    const auto* left = std::get_if<std::string>(&a);
    const auto* right = std::get_if<std::string>(&b);
    if (left != nullptr && right != nullptr) {
        return *left == *right;
    }
    return std::holds_alternative<py::None>(a) && std::holds_alternative<py::None>(b);
}

std::optional<bool> contained(const FunctionScope& scope, const Constant& value,
                              const std::vector<py::ExprPtr>& elements) {
    bool found = false;
    for (const py::ExprPtr& element : elements) {
        const auto one = known_value(scope, *element);
        const auto same = one ? equal(value, *one) : std::nullopt;
        if (!same) {
            return std::nullopt;
        }
        found = found || *same;
    }
    return found;
}

std::optional<bool> compared(const FunctionScope& scope, const py::Compare& node) {
    if (node.ops.size() != 1) {
        return std::nullopt;
    }
    const py::Expr& right = *node.comparators.front();
    const py::CompareOperator op = node.ops.front();
    const bool negated = op == py::CompareOperator::NotIn || op == py::CompareOperator::NotEq ||
                         op == py::CompareOperator::IsNot;
    const auto result = [&](std::optional<bool> holds) {
        return holds ? std::optional(*holds != negated) : std::nullopt;
    };
    const bool in = op == py::CompareOperator::In || op == py::CompareOperator::NotIn;
    if (in && is_empty_keywords(scope, right)) {
        return result(false);
    }
    const auto left = known_value(scope, *node.left);
    if (!left) {
        return std::nullopt;
    }
    if (in) {
        if (const auto* tuple = py::as<py::Tuple>(right)) {
            return result(contained(scope, *left, tuple->elts));
        }
        const auto* list = py::as<py::List>(right);
        return list ? result(contained(scope, *left, list->elts)) : std::nullopt;
    }
    const auto other = known_value(scope, right);
    if (!other) {
        return std::nullopt;
    }
    switch (op) {
        case py::CompareOperator::Eq:
        case py::CompareOperator::NotEq: return result(equal(*left, *other));
        case py::CompareOperator::Is:
        case py::CompareOperator::IsNot:
            if (std::holds_alternative<py::None>(*other) ||
                std::holds_alternative<py::None>(*left)) {
                return result(left->index() == other->index());
            }
            if (std::holds_alternative<bool>(*other) && std::holds_alternative<bool>(*left)) {
                return result(equal(*left, *other));
            }
            return std::nullopt;
        default: return std::nullopt;
    }
}

}  // namespace

std::map<std::string, int> assigned_names(const py::FunctionDef& function) {
    std::map<std::string, int> names;
    const auto& args = function.args;
    for (const auto* list : {&args.posonlyargs, &args.args, &args.kwonlyargs}) {
        for (const py::Arg& arg : *list) {
            ++names[arg.arg];
        }
    }
    for (const auto* rest : {args.vararg.get(), args.kwarg.get()}) {
        if (rest != nullptr) {
            ++names[rest->arg];
        }
    }
    for (const py::StmtPtr& statement : function.body) {
        py::walk(*statement, [&](const py::Node& node) {
            if (const auto* name = py::as<py::Name>(node);
                name != nullptr && name->ctx != py::ExprContext::Load) {
                ++names[name->id];
            }
            return true;
        });
    }
    return names;
}

std::optional<std::map<std::string, int>> attributes_bound(const py::FunctionDef& function,
                                                           const std::string& ctx) {
    std::map<std::string, int> bound;
    std::size_t uses = 0;
    std::size_t attributes = 0;
    for (const py::StmtPtr& statement : function.body) {
        py::walk(*statement, [&](const py::Node& node) {
            const auto* name = py::as<py::Name>(node);
            uses += name != nullptr && name->id == ctx ? 1 : 0;
            if (const auto* attribute = member_of(node, ctx)) {
                ++attributes;
                if (attribute->ctx != py::ExprContext::Load) {
                    ++bound[attribute->attr];
                }
            }
            return true;
        });
    }
    return uses == attributes ? std::optional(bound) : std::nullopt;
}

Sequence sequence_of(const FunctionScope& scope, const py::Expr& expr) {
    if (const auto* name = py::as<py::Name>(expr)) {
        if (scope.constants.contains(name->id)) {
            return Sequence::none;
        }
        const auto known = scope.sequences.find(name->id);
        return known == scope.sequences.end() ? Sequence::unknown : known->second;
    }
    if (const auto* attribute = py::as<py::Attribute>(expr)) {
        static const std::set<std::string> others = {"dtype",  "device",  "ndim",
                                                     "layout", "is_cuda", "requires_grad"};
        const auto* self = py::as<py::Name>(attribute->value);
        return attribute->attr == "shape"              ? Sequence::tuple
               : others.contains(attribute->attr)      ? Sequence::none
               : self != nullptr && self->id == "self" ? Sequence::list
                                                       : Sequence::unknown;
    }
    if (const auto* part = py::as<py::Subscript>(expr)) {
        return py::as<py::Slice>(part->slice) ? sequence_of(scope, *part->value)
                                              : Sequence::unknown;
    }
    if (const auto* call = py::as<py::Call>(expr)) {
        const auto* method = py::as<py::Attribute>(call->func);
        const auto* made = py::as<py::Name>(call->func);
        if (method != nullptr && (method->attr == "size" || method->attr == "stride")) {
            return call->args.empty() && call->keywords.empty() ? Sequence::tuple : Sequence::none;
        }
        if (method != nullptr && (method->attr == "tolist" || method->attr == "copy")) {
            return Sequence::list;
        }
        if (made != nullptr && (made->id == "list" || made->id == "tuple") &&
            !scope.is_local(made->id)) {
            return made->id == "list" ? Sequence::list : Sequence::tuple;
        }
        return Sequence::unknown;
    }
    switch (expr.kind) {
        case py::NodeKind::Tuple: return Sequence::tuple;
        case py::NodeKind::List:
        case py::NodeKind::ListComp: return Sequence::list;
        case py::NodeKind::IfExp: {
            const auto& choice = *py::as<py::IfExp>(expr);
            const Sequence one = sequence_of(scope, *choice.body);
            return one == sequence_of(scope, *choice.orelse) ? one : Sequence::unknown;
        }
        case py::NodeKind::BinOp: {
            // [1] + [2], (1,) * 3
            const auto& operation = *py::as<py::BinOp>(expr);
            const Sequence left = sequence_of(scope, *operation.left);
            const Sequence right = sequence_of(scope, *operation.right);
            const auto known = [](Sequence one) {
                return one == Sequence::tuple || one == Sequence::list;
            };
            return known(left)                                  ? left
                   : known(right)                               ? right
                   : left == Sequence::unknown || right == left ? left
                                                                : right;
        }
        default: return Sequence::none;
    }
}

std::optional<const py::Expr*> default_of_keyword(const FunctionScope& scope,
                                                  const py::Expr& expr) {
    const auto* call = py::as<py::Call>(expr);
    const auto* method = call ? py::as<py::Attribute>(call->func) : nullptr;
    const auto* owner = method ? py::as<py::Name>(method->value) : nullptr;
    if (owner == nullptr || owner->id != scope.no_keywords || scope.no_keywords.empty() ||
        !call->keywords.empty() || call->args.empty() || call->args.size() > 2) {
        return std::nullopt;
    }
    if (method->attr == "get" || (method->attr == "pop" && call->args.size() == 2)) {
        return call->args.size() == 2 ? call->args[1].get() : nullptr;
    }
    return std::nullopt;
}

namespace {

// What the variable of a comprehension stands for is an expression outside of it, where the same
// name may be another variable.
std::optional<Constant> known_outside(const FunctionScope& scope, const std::string& variable,
                                      const py::Expr& expr) {
    FunctionScope outside = scope;
    outside.stands_for.erase(variable);
    return known_value(outside, expr);
}

}  // namespace

std::optional<Constant> known_value(const FunctionScope& scope, const py::Expr& expr) {
    if (const auto* constant = py::as<py::Constant>(expr)) {
        return constant->value;
    }
    if (const auto* name = py::as<py::Name>(expr)) {
        if (const auto other = scope.stands_for.find(name->id); other != scope.stands_for.end()) {
            return known_outside(scope, name->id, *other->second);
        }
        const auto known = scope.constants.find(name->id);
        return known == scope.constants.end() ? std::nullopt : std::optional(known->second);
    }
    if (const auto* stored = scope.names.stored;
        stored != nullptr && member_of(expr, stored->ctx) != nullptr) {
        const auto known = stored->known.find(member_of(expr, stored->ctx)->attr);
        return known == stored->known.end() ? std::nullopt : std::optional(known->second);
    }
    if (const auto* call = py::as<py::Call>(expr)) {
        const auto* called = py::as<py::Name>(call->func);
        if (called != nullptr && called->id == "len" && call->args.size() == 1 &&
            is_rest(scope, *call->args.front()) && !scope.is_local("len")) {
            return static_cast<std::int64_t>(scope.rest.size());
        }
    }
    if (const auto keyword = default_of_keyword(scope, expr)) {
        return *keyword == nullptr ? std::optional<Constant>(py::None{})
                                   : known_value(scope, **keyword);
    }
    if (const auto* choice = py::as<py::IfExp>(expr)) {
        const auto holds = known_truth(scope, *choice->test);
        return holds ? known_value(scope, *holds ? *choice->body : *choice->orelse) : std::nullopt;
    }
    if (py::as<py::Compare>(expr) || py::as<py::UnaryOp>(expr) || py::as<py::BoolOp>(expr)) {
        if (const auto* boolean = py::as<py::BoolOp>(expr)) {
            // a or b is a or b, not a flag.
            for (const py::ExprPtr& value : boolean->values) {
                const auto one = known_value(scope, *value);
                const auto holds = one ? truth_of(*one) : std::nullopt;
                if (!holds) {
                    return std::nullopt;
                }
                if (*holds == (boolean->op == py::BoolOperator::Or) ||
                    &value == &boolean->values.back()) {
                    return one;
                }
            }
        }
        if (const auto* unary = py::as<py::UnaryOp>(expr);
            unary != nullptr && unary->op != py::UnaryOperator::Not) {
            return std::nullopt;
        }
        const auto holds = known_truth(scope, expr);
        return holds ? std::optional<Constant>(*holds) : std::nullopt;
    }
    return std::nullopt;
}

std::optional<bool> known_truth(const FunctionScope& scope, const py::Expr& expr) {
    if (is_empty_keywords(scope, expr)) {
        return false;
    }
    if (is_rest(scope, expr)) {
        return true;
    }
    if (const auto* compare = py::as<py::Compare>(expr)) {
        return compared(scope, *compare);
    }
    if (const auto* unary = py::as<py::UnaryOp>(expr)) {
        const auto holds = unary->op == py::UnaryOperator::Not ? known_truth(scope, *unary->operand)
                                                               : std::nullopt;
        return holds ? std::optional(!*holds) : std::nullopt;
    }
    if (const auto* boolean = py::as<py::BoolOp>(expr)) {
        const bool decides = boolean->op == py::BoolOperator::Or;
        for (const py::ExprPtr& value : boolean->values) {
            const auto holds = known_truth(scope, *value);
            if (!holds) {
                return std::nullopt;  // what comes before is computed
            }
            if (*holds == decides) {
                return decides;
            }
        }
        return !decides;
    }
    const auto value = known_value(scope, expr);
    return value ? truth_of(*value) : std::nullopt;
}

}  // namespace twinkle::runtime
