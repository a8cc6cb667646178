#include "runtime/source/lowering.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

namespace {

class Statements {
public:
    explicit Statements(const SourceFile& file) : file_(file) {}

    jit::List<jit::Stmt> block(const py::Block& body);
    jit::Stmt assignment(const py::Node& at, const std::string& name, const py::Expr& value);

private:
    using Range = jit::SourceRange;

    void lower(const py::Stmt& statement, std::vector<jit::Stmt>& out);
    jit::Expr expression(const py::Expr& expr) { return lower_expression(file_, expr); }
    jit::Stmt assign(const py::Assign& node, const Range& range);
    jit::Stmt annotated(const py::AnnAssign& node, const Range& range);
    jit::Stmt augmented(const py::AugAssign& node, const Range& range);
    jit::Stmt for_loop(const py::For& node, const Range& range);
    jit::Stmt raise(const py::Raise& node, const Range& range);

    const SourceFile& file_;
};

bool is_docstring(const py::Stmt& statement) {
    const auto* expression = py::as<py::ExprStmt>(statement);
    const auto* constant = expression ? py::as<py::Constant>(expression->value) : nullptr;
    return constant != nullptr && constant->string() != nullptr;
}

jit::List<jit::Stmt> Statements::block(const py::Block& body) {
    std::vector<jit::Stmt> statements;
    for (const py::StmtPtr& statement : body) {
        lower(*statement, statements);
    }
    const Range range = body.empty() ? Range(file_.source(), 0, 0) : file_.range(*body.front());
    return jit::List<jit::Stmt>::create(range, statements);
}

void Statements::lower(const py::Stmt& statement, std::vector<jit::Stmt>& out) {
    const Range range = file_.range(statement);
    switch (statement.kind) {
        case py::NodeKind::Return: {
            const auto& node = *py::as<py::Return>(statement);
            out.push_back(jit::Return::create(
                range, node.value ? expression(*node.value)
                                  : jit::Expr(jit::Compound::create(jit::TK_NONE, range, {}))));
            return;
        }
        case py::NodeKind::ExprStmt:
            if (!is_docstring(statement)) {
                out.push_back(jit::ExprStmt::create(
                    range, expression(*py::as<py::ExprStmt>(statement)->value)));
            }
            return;
        case py::NodeKind::Assign:
            out.push_back(assign(*py::as<py::Assign>(statement), range));
            return;
        case py::NodeKind::AnnAssign:
            out.push_back(annotated(*py::as<py::AnnAssign>(statement), range));
            return;
        case py::NodeKind::AugAssign:
            out.push_back(augmented(*py::as<py::AugAssign>(statement), range));
            return;
        case py::NodeKind::If: {
            const auto& node = *py::as<py::If>(statement);
            out.push_back(jit::If::create(range, expression(*node.test), block(node.body),
                                          block(node.orelse)));
            return;
        }
        case py::NodeKind::While: {
            const auto& node = *py::as<py::While>(statement);
            if (!node.orelse.empty()) {
                file_.refuse(node, "while … else");
            }
            out.push_back(jit::While::create(range, expression(*node.test), block(node.body)));
            return;
        }
        case py::NodeKind::For: out.push_back(for_loop(*py::as<py::For>(statement), range)); return;
        case py::NodeKind::Raise:
            out.push_back(raise(*py::as<py::Raise>(statement), range));
            return;
        case py::NodeKind::Assert: {
            const auto& node = *py::as<py::Assert>(statement);
            out.push_back(jit::Assert::create(
                range, expression(*node.test),
                node.msg ? jit::Maybe<jit::Expr>::create(range, expression(*node.msg))
                         : jit::Maybe<jit::Expr>::create(range)));
            return;
        }
        case py::NodeKind::Pass: out.push_back(jit::Pass::create(range)); return;
        case py::NodeKind::Break: out.push_back(jit::Break::create(range)); return;
        case py::NodeKind::Continue: out.push_back(jit::Continue::create(range)); return;
        case py::NodeKind::Delete: {
            std::vector<jit::Expr> targets;
            for (const py::ExprPtr& target : py::as<py::Delete>(statement)->targets) {
                targets.push_back(expression(*target));
            }
            out.push_back(jit::Delete::create(range, jit::List<jit::Expr>::create(range, targets)));
            return;
        }
        default:
            file_.refuse(statement, std::string(py::kind_name(statement.kind)) +
                                        " has no counterpart in TorchScript");
    }
}

jit::Stmt Statements::assign(const py::Assign& node, const Range& range) {
    std::vector<jit::Expr> targets;
    for (const py::ExprPtr& target : node.targets) {
        targets.push_back(expression(*target));
    }
    return jit::Assign::create(range, jit::List<jit::Expr>::create(range, targets),
                               jit::Maybe<jit::Expr>::create(range, expression(*node.value)),
                               jit::Maybe<jit::Expr>::create(range));
}

jit::Stmt Statements::annotated(const py::AnnAssign& node, const Range& range) {
    if (!node.value) {
        return jit::Pass::create(range);
    }
    return jit::Assign::create(range,
                               jit::List<jit::Expr>::create(range, {expression(*node.target)}),
                               jit::Maybe<jit::Expr>::create(range, expression(*node.value)),
                               jit::Maybe<jit::Expr>::create(range, expression(*node.annotation)));
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
        case py::Operator::FloorDiv: file_.refuse(node, "an augmented @= or //=");
    }
    return jit::AugAssign::create(range, expression(*node.target),
                                  jit::AugAssignKind(jit::Compound::create(kind, range, {})),
                                  expression(*node.value));
}

jit::Stmt Statements::for_loop(const py::For& node, const Range& range) {
    if (!node.orelse.empty()) {
        file_.refuse(node, "for … else");
    }
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

jit::Stmt Statements::raise(const py::Raise& node, const Range& range) {
    if (!node.exc) {
        file_.refuse(node, "a raise without an exception");
    }
    return jit::Raise::create(range, expression(*node.exc));
}

jit::Stmt Statements::assignment(const py::Node& at, const std::string& name,
                                 const py::Expr& value) {
    const Range range = file_.range(at);
    const jit::Expr target = jit::Var::create(range, jit::Ident::create(range, name));
    return jit::Assign::create(range, jit::List<jit::Expr>::create(range, {target}),
                               jit::Maybe<jit::Expr>::create(range, expression(value)),
                               jit::Maybe<jit::Expr>::create(range));
}

// Every parameter with its default, if it has one.
std::vector<std::pair<const py::Arg*, const py::Expr*>> parameters_of(const py::Arguments& args) {
    std::vector<std::pair<const py::Arg*, const py::Expr*>> result;
    for (const py::Arg& arg : args.posonlyargs) {
        result.emplace_back(&arg, nullptr);
    }
    for (const py::Arg& arg : args.args) {
        result.emplace_back(&arg, nullptr);
    }
    const std::size_t first = result.size() - args.defaults.size();
    for (std::size_t i = 0; i < args.defaults.size(); ++i) {
        result[first + i].second = args.defaults[i].get();
    }
    for (std::size_t i = 0; i < args.kwonlyargs.size(); ++i) {
        result.emplace_back(&args.kwonlyargs[i], args.kw_defaults[i].get());
    }
    return result;
}

}  // namespace

jit::Def lower_function(const SourceFile& file, const py::FunctionDef& function,
                        const std::string& name, const std::vector<LoweredParameter>& parameters) {
    if (function.args.vararg || function.args.kwarg) {
        file.refuse(function, "*args or **kwargs in the parameters of " + function.name);
    }
    const jit::SourceRange range = file.range(function);
    Statements lowering(file);
    std::vector<jit::Param> params;
    std::vector<jit::Stmt> body;
    for (const auto& [arg, fallback] : parameters_of(function.args)) {
        const auto given = std::find_if(parameters.begin(), parameters.end(),
                                        [&](const auto& one) { return one.name == arg->arg; });
        if (given == parameters.end()) {
            if (fallback == nullptr) {
                file.refuse(*arg, "the parameter " + arg->arg + " of " + function.name +
                                      " gets no value and has no default");
            }
            body.push_back(lowering.assignment(*arg, arg->arg, *fallback));
            continue;
        }
        const jit::SourceRange at = file.range(*arg);
        params.push_back(jit::Param::create(
            at, jit::Ident::create(at, arg->arg),
            given->type.empty() ? jit::Maybe<jit::Expr>::create(at)
                                : jit::Maybe<jit::Expr>::create(at, type_reference(given->type)),
            jit::Maybe<jit::Expr>::create(at), false));
    }
    for (const jit::Stmt& statement : lowering.block(function.body)) {
        body.push_back(statement);
    }
    const auto decl = jit::Decl::create(range, jit::List<jit::Param>::create(range, params),
                                        jit::Maybe<jit::Expr>::create(range));
    return jit::Def::create(range, jit::Ident::create(range, name), decl,
                            jit::List<jit::Stmt>::create(range, body));
}

}  // namespace twinkle::runtime
