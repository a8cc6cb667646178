#pragma once
// Lowers the expressions of one function. Those with names, calls and texts are in
// lowering_calls.cpp, operators and tests in lowering_operators.cpp, comprehensions in
// lowering_comprehensions.cpp.

#include "runtime/source/lowering_scope.h"

#include <optional>
#include <vector>

namespace twinkle::runtime {

class Expressions {
public:
    explicit Expressions(FunctionScope& scope) : file_(scope.file), scope_(scope) {}

    torch::jit::Expr lower(const python::Expr& expr);
    // Lowers it where only its truth is wanted.
    torch::jit::Expr test(const python::Expr& expr);
    std::optional<torch::jit::Expr> written_out(const python::Expr& comprehension,
                                                std::size_t count);

private:
    using Range = torch::jit::SourceRange;

    torch::jit::Expr name(const python::Name& node, const Range& range);
    torch::jit::Expr boolean(const python::BoolOp& node, const Range& range, bool as_test);
    torch::jit::Expr choice(const python::IfExp& node, const Range& range);
    void arguments(const python::Call& node, std::vector<torch::jit::Expr>& inputs);
    // (*a, b): tuples and lists one after the other.
    torch::jit::Expr sequence(const std::vector<python::ExprPtr>& nodes, const Range& range,
                              const char* made_by);

    torch::jit::Expr call(const python::Call& node, const Range& range);
    std::optional<torch::jit::Expr> text_call(const python::Call& node, const Range& range);
    std::optional<torch::jit::Expr> question(const python::Call& node, const Range& range);
    torch::jit::Expr callee(const python::Call& node, const Range& range,
                            std::vector<torch::jit::Expr>& inputs);
    torch::jit::Expr formatted(const python::FormattedValue& value);
    torch::jit::Expr rest(const Range& range);
    bool is_empty_rest(const python::Starred* star) const;
    torch::jit::Expr compare(const python::Compare& node, const Range& range);
    std::optional<torch::jit::Expr> among_none(python::CompareOperator op,
                                               const python::Expr& value,
                                               const python::Expr& candidates, const Range& range);
    std::optional<torch::jit::Expr> equal(python::CompareOperator op, const python::Expr& left,
                                          const python::Expr& right, const Range& range);
    torch::jit::Expr binary(const python::BinOp& node, const Range& range);
    torch::jit::Expr unary(const python::UnaryOp& node, const Range& range);
    torch::jit::Expr joined_string(const python::JoinedStr& node, const Range& range);
    torch::jit::Expr subscript(const python::Subscript& node, const Range& range);
    torch::jit::Expr subscript_element(const python::Expr& node);
    torch::jit::Expr comprehension(const python::Expr& elt,
                                   const std::vector<python::Comprehension>& generators,
                                   const Range& range);
    torch::jit::Expr comprehension(const python::DictComp& node, const Range& range);
    torch::jit::Maybe<torch::jit::Expr> maybe(const python::ExprPtr& node, const Range& range);
    torch::jit::List<torch::jit::Expr> list(const std::vector<python::ExprPtr>& nodes,
                                            const Range& range);

    const SourceFile& file_;
    FunctionScope& scope_;
};

torch::jit::Expr keyword_tree(int kind, const torch::jit::SourceRange& range);
// A call of one of the names of lowered_name.
torch::jit::Expr apply(const torch::jit::SourceRange& range, const std::string& name,
                       const std::vector<torch::jit::Expr>& inputs);

}  // namespace twinkle::runtime
