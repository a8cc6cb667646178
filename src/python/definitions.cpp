// Functions and classes: decorators, parameters, type parameters.
#include "python/parser_impl.h"

namespace twinkle::python {

StmtPtr Parser::decorated() {
    std::vector<ExprPtr> decorators;
    while (accept(Tok::At)) {
        decorators.push_back(named_expression());
        expect(Tok::Newline);
    }
    return function_or_class(std::move(decorators));
}

StmtPtr Parser::function_or_class(std::vector<ExprPtr> decorators) {
    const Mark begin = mark();
    if (at(Tok::KwClass)) {
        return class_def(std::move(decorators), begin);
    }
    if (at(Tok::KwDef)) {
        return function_def<FunctionDef>(std::move(decorators), begin);
    }
    if (at(Tok::KwAsync) && at_next(Tok::KwDef)) {
        take();
        return function_def<AsyncFunctionDef>(std::move(decorators), begin);
    }
    fail_unexpected();
}

template <class T>
StmtPtr Parser::function_def(std::vector<ExprPtr> decorators, const Mark& begin) {
    take();
    auto node = std::make_unique<T>();
    node->decorator_list = std::move(decorators);
    node->name = expect_name();
    node->type_params = type_params();
    expect(Tok::LPar);
    node->args = parameters(Tok::RPar, true);
    expect(Tok::RPar);
    if (accept(Tok::Arrow)) {
        node->returns = expression();
    }
    node->body = block("function definition", begin);
    return placed(std::move(node), begin);
}

StmtPtr Parser::class_def(std::vector<ExprPtr> decorators, const Mark& begin) {
    take();
    auto node = std::make_unique<ClassDef>();
    node->decorator_list = std::move(decorators);
    node->name = expect_name();
    node->type_params = type_params();
    if (accept(Tok::LPar)) {
        call_arguments(node->bases, node->keywords);
        expect(Tok::RPar);
    }
    node->body = block("class definition", begin);
    return placed(std::move(node), begin);
}

Arg Parser::parameter(bool annotated, bool star_annotation) {
    const Mark begin = mark();
    Arg arg;
    arg.arg = expect_name();
    if (annotated && accept(Tok::Colon)) {
        arg.annotation = star_annotation && at(Tok::Star) ? starred() : expression();
    }
    place(arg, begin);
    return arg;
}

// Up to `end`, which is left.
Arguments Parser::parameters(Tok end, bool annotated) {
    const Mark begin = mark();
    Arguments out;
    bool slash = false;
    bool star = false;
    while (!at(end)) {
        if (out.kwarg) {
            fail("arguments cannot follow var-keyword argument");
        }
        if (accept(Tok::DoubleStar)) {
            out.kwarg = std::make_unique<Arg>(parameter(annotated));
            if (at(Tok::Equal)) fail("var-keyword argument cannot have default value");
        } else if (at(Tok::Star)) {
            if (star) fail("* argument may appear only once");
            star = true;
            take();
            if (at(Tok::Comma)) {
                if (!(peek(1).kind == Tok::Name)) fail("named arguments must follow bare *");
            } else {
                out.vararg = std::make_unique<Arg>(parameter(annotated, true));
                if (at(Tok::Equal)) fail("var-positional argument cannot have default value");
            }
        } else if (at(Tok::Slash)) {
            if (star) fail("/ must be ahead of *");
            if (slash) fail("/ may appear only once");
            if (out.args.empty()) fail("at least one argument must precede /");
            take();
            slash = true;
            out.posonlyargs = std::move(out.args);
            out.args.clear();
        } else if (star) {
            out.kwonlyargs.push_back(parameter(annotated));
            out.kw_defaults.push_back(accept(Tok::Equal) ? expression() : nullptr);
        } else {
            out.args.push_back(parameter(annotated));
            if (accept(Tok::Equal)) {
                out.defaults.push_back(expression());
            } else if (!out.defaults.empty()) {
                fail(out.args.back().span, "non-default argument follows default argument");
            }
        }
        if (!accept(Tok::Comma)) {
            break;
        }
    }
    place(out, begin);
    return out;
}

std::vector<TypeParamPtr> Parser::type_params() {
    std::vector<TypeParamPtr> out;
    if (!accept(Tok::LSqb)) {
        return out;
    }
    do {
        if (at(Tok::RSqb) && !out.empty()) break;
        out.push_back(type_param());
    } while (accept(Tok::Comma));
    expect(Tok::RSqb);
    return out;
}

TypeParamPtr Parser::type_param() {
    const Mark begin = mark();
    if (accept(Tok::DoubleStar)) {
        auto node = std::make_unique<ParamSpec>();
        node->name = expect_name();
        if (accept(Tok::Equal)) node->default_value = expression();
        return placed(std::move(node), begin);
    }
    if (accept(Tok::Star)) {
        auto node = std::make_unique<TypeVarTuple>();
        node->name = expect_name();
        if (accept(Tok::Equal)) node->default_value = star_expression();
        return placed(std::move(node), begin);
    }
    auto node = std::make_unique<TypeVar>();
    node->name = expect_name();
    if (accept(Tok::Colon)) node->bound = expression();
    if (accept(Tok::Equal)) node->default_value = expression();
    return placed(std::move(node), begin);
}

}  // namespace twinkle::python
