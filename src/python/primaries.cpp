// Attributes, calls, subscripts, and the atoms they begin with.
#include "python/parser_impl.h"

namespace twinkle::python {

ExprPtr Parser::primary() {
    const Mark begin = mark();
    ExprPtr value = atom();
    for (;;) {
        if (at(Tok::LPar)) {
            value = call(std::move(value), begin);
        } else if (at(Tok::LSqb)) {
            value = subscript(std::move(value), begin);
        } else if (accept(Tok::Dot)) {
            auto node = std::make_unique<Attribute>();
            node->value = std::move(value);
            node->attr = expect_name();
            value = placed(std::move(node), begin);
        } else {
            return value;
        }
    }
}

ExprPtr Parser::call(ExprPtr func, const Mark& begin) {
    const Mark open = mark();
    take();
    auto node = std::make_unique<Call>();
    node->func = std::move(func);
    call_arguments(node->args, node->keywords);
    const bool lone = node->args.size() == 1 && node->keywords.empty();
    if (at_comprehension()) {
        if (!lone || as<Starred>(node->args[0])) {
            fail(open, "Generator expression must be parenthesized");
        }
        auto generator = std::make_unique<GeneratorExp>();
        generator->elt = std::move(node->args[0]);
        generator->generators = comprehensions();
        if (at(Tok::Comma)) {
            fail(open, "Generator expression must be parenthesized");
        }
        expect(Tok::RPar);
        node->args[0] = placed(std::move(generator), open);
    } else {
        expect(Tok::RPar);
    }
    return placed(std::move(node), begin);
}

// Up to the closing parenthesis, or up to the `for` of a generator expression.
void Parser::call_arguments(std::vector<ExprPtr>& args, std::vector<Keyword>& keywords) {
    bool unpacked = false;
    while (!at(Tok::RPar)) {
        const Mark begin = mark();
        if ((at(Tok::Name) && at_next(Tok::Equal)) || at(Tok::DoubleStar)) {
            Keyword keyword;
            if (accept(Tok::DoubleStar)) {
                unpacked = true;
            } else {
                keyword.arg = expect_name();
                take();
            }
            keyword.value = expression();
            place(keyword, begin);
            keywords.push_back(std::move(keyword));
        } else if (accept(Tok::Star)) {
            auto node = std::make_unique<Starred>();
            node->value = expression();
            if (unpacked) {
                fail(begin, "iterable argument unpacking follows keyword argument unpacking");
            }
            args.push_back(placed(std::move(node), begin));
        } else {
            args.push_back(named_expression());
            if (at(Tok::Equal)) {
                fail(begin, "expression cannot contain assignment, perhaps you meant \"==\"?");
            }
            if (!keywords.empty()) {
                fail(begin, unpacked ? "positional argument follows keyword argument unpacking"
                                     : "positional argument follows keyword argument");
            }
        }
        if (!accept(Tok::Comma)) {
            return;
        }
    }
}

ExprPtr Parser::subscript(ExprPtr value, const Mark& begin) {
    take();
    auto node = std::make_unique<Subscript>();
    node->value = std::move(value);
    node->slice = slices();
    expect(Tok::RSqb);
    return placed(std::move(node), begin);
}

ExprPtr Parser::slices() {
    const Mark begin = mark();
    const bool star = at(Tok::Star);
    ExprPtr first = star ? starred() : slice();
    if (!star && !at(Tok::Comma)) {
        return first;
    }
    auto node = std::make_unique<Tuple>();
    node->elts.push_back(std::move(first));
    while (accept(Tok::Comma) && !at(Tok::RSqb)) {
        node->elts.push_back(at(Tok::Star) ? starred() : slice());
    }
    return placed(std::move(node), begin);
}

ExprPtr Parser::slice() {
    const Mark begin = mark();
    ExprPtr lower;
    if (!at(Tok::Colon)) {
        lower = named_expression();
        if (!at(Tok::Colon)) {
            return lower;
        }
        if (as<NamedExpr>(lower) && source_[begin.begin] != '(') {
            fail_unexpected();
        }
    }
    const auto bound = [&] {
        return at(Tok::Colon) || at(Tok::Comma) || at(Tok::RSqb) ? nullptr : expression();
    };
    auto node = std::make_unique<Slice>();
    node->lower = std::move(lower);
    take();
    node->upper = bound();
    if (accept(Tok::Colon)) {
        node->step = bound();
    }
    return placed(std::move(node), begin);
}

ExprPtr Parser::atom() {
    switch (peek().kind) {
        case Tok::Name: return name();
        case Tok::Number: return number();
        case Tok::String:
        case Tok::FStringStart: return strings();
        case Tok::LPar: return group_tuple_or_generator();
        case Tok::LSqb: return list_or_comprehension();
        case Tok::LBrace: return dict_or_set();
        case Tok::KwNone: return constant(None{});
        case Tok::KwTrue: return constant(true);
        case Tok::KwFalse: return constant(false);
        case Tok::EllipsisDots: return constant(Ellipsis{});
        default: fail_unexpected();
    }
}

ExprPtr Parser::name() {
    const Mark begin = mark();
    auto node = std::make_unique<Name>();
    node->id = expect_name();
    return placed(std::move(node), begin);
}

ExprPtr Parser::constant(ConstantValue value) {
    const Mark begin = mark();
    take();
    auto node = std::make_unique<Constant>();
    node->value = std::move(value);
    return placed(std::move(node), begin);
}

ExprPtr Parser::group_tuple_or_generator() {
    const Mark begin = mark();
    take();
    if (at(Tok::KwYield)) {
        ExprPtr value = yield_expression();
        expect(Tok::RPar);
        return value;
    }
    if (accept(Tok::RPar)) {
        return placed(std::make_unique<Tuple>(), begin);
    }
    ExprPtr first = star_named_expression();
    if (at_comprehension()) {
        if (as<Starred>(first)) {
            fail(first->span, "iterable unpacking cannot be used in comprehension");
        }
        auto node = std::make_unique<GeneratorExp>();
        node->elt = std::move(first);
        node->generators = comprehensions();
        expect(Tok::RPar);
        return placed(std::move(node), begin);
    }
    if (!at(Tok::Comma)) {
        if (as<Starred>(first)) {
            fail(first->span, "cannot use starred expression here");
        }
        expect(Tok::RPar);
        return first;
    }
    auto node = std::make_unique<Tuple>();
    node->elts.push_back(std::move(first));
    while (accept(Tok::Comma) && !at(Tok::RPar)) {
        node->elts.push_back(star_named_expression());
    }
    expect(Tok::RPar);
    return placed(std::move(node), begin);
}

ExprPtr Parser::list_or_comprehension() {
    const Mark begin = mark();
    take();
    auto node = std::make_unique<List>();
    while (!at(Tok::RSqb)) {
        node->elts.push_back(star_named_expression());
        if (at_comprehension() && node->elts.size() == 1) {
            if (as<Starred>(node->elts[0])) {
                fail(node->elts[0]->span, "iterable unpacking cannot be used in comprehension");
            }
            auto comp = std::make_unique<ListComp>();
            comp->elt = std::move(node->elts[0]);
            comp->generators = comprehensions();
            expect(Tok::RSqb);
            return placed(std::move(comp), begin);
        }
        if (!accept(Tok::Comma)) {
            break;
        }
    }
    expect(Tok::RSqb);
    return placed(std::move(node), begin);
}

ExprPtr Parser::dict_or_set() {
    const Mark begin = mark();
    take();
    if (at(Tok::RBrace) || at(Tok::DoubleStar)) {
        return dict_rest(nullptr, begin);
    }
    const bool grouped = at(Tok::LPar);
    ExprPtr first = star_named_expression();
    if (!at(Tok::Colon)) {
        return set_rest(std::move(first), begin);
    }
    if (as<Starred>(first) || (as<NamedExpr>(first) && !grouped)) {
        fail_unexpected();
    }
    return dict_rest(std::move(first), begin);
}

ExprPtr Parser::set_rest(ExprPtr first, const Mark& begin) {
    if (at_comprehension()) {
        if (as<Starred>(first)) {
            fail(first->span, "iterable unpacking cannot be used in comprehension");
        }
        auto comp = std::make_unique<SetComp>();
        comp->elt = std::move(first);
        comp->generators = comprehensions();
        expect(Tok::RBrace);
        return placed(std::move(comp), begin);
    }
    auto node = std::make_unique<Set>();
    node->elts.push_back(std::move(first));
    while (accept(Tok::Comma) && !at(Tok::RBrace)) {
        node->elts.push_back(star_named_expression());
    }
    expect(Tok::RBrace);
    return placed(std::move(node), begin);
}

// `first` is the key that has been read already, if any.
ExprPtr Parser::dict_rest(ExprPtr first, const Mark& begin) {
    auto node = std::make_unique<Dict>();
    while (first || !at(Tok::RBrace)) {
        if (!first && accept(Tok::DoubleStar)) {
            node->keys.push_back(nullptr);
            node->values.push_back(bitwise_or());
        } else {
            ExprPtr key = first ? std::move(first) : expression();
            expect(Tok::Colon);
            node->keys.push_back(std::move(key));
            node->values.push_back(expression());
            if (at_comprehension() && node->keys.size() == 1) {
                auto comp = std::make_unique<DictComp>();
                comp->key = std::move(node->keys[0]);
                comp->value = std::move(node->values[0]);
                comp->generators = comprehensions();
                expect(Tok::RBrace);
                return placed(std::move(comp), begin);
            }
        }
        if (!accept(Tok::Comma)) {
            break;
        }
    }
    expect(Tok::RBrace);
    return placed(std::move(node), begin);
}

bool Parser::at_comprehension() const {
    return at(Tok::KwFor) || (at(Tok::KwAsync) && at_next(Tok::KwFor));
}

std::vector<Comprehension> Parser::comprehensions() {
    std::vector<Comprehension> out;
    while (at_comprehension()) {
        const Mark begin = mark();
        Comprehension part;
        part.is_async = accept(Tok::KwAsync);
        expect(Tok::KwFor);
        part.target = star_targets(Tok::KwIn);
        expect(Tok::KwIn);
        part.iter = disjunction();
        while (accept(Tok::KwIf)) {
            part.ifs.push_back(disjunction());
        }
        place(part, begin);
        out.push_back(std::move(part));
    }
    return out;
}

}  // namespace twinkle::python
