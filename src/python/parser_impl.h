#pragma once
// The recursive descent parser. Its methods are grouped by file as marked; each is named after the
// rule of Python's grammar that it reads, and leaves the parser behind what it has read.

#include "python/fields.h"
#include "python/lexer.h"
#include "python/parser.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace twinkle::python {

class Parser {
public:
    Parser(std::string_view source, TokenList tokens);
    std::unique_ptr<Module> module();

    // Thrown for a syntax error; parse_module turns it into its result.
    struct Failure {
        std::uint32_t line;
        std::uint32_t column;
        std::string message;
    };

private:
    using Mark = Span;  // where a node begins

    // Counts the recursion of rules; beyond the limit the source is refused.
    class Descent {
    public:
        explicit Descent(Parser& parser);
        ~Descent() { --parser_.depth_; }
        Descent(const Descent&) = delete;
        Descent& operator=(const Descent&) = delete;

    private:
        Parser& parser_;
    };

    // parser.cpp: tokens and errors
    const Token& peek(std::size_t ahead = 0) const {
        return tokens_[std::min(index_ + ahead, tokens_.size() - 1)];
    }
    bool at(Tok kind) const { return peek().kind == kind; }
    bool at_next(Tok kind) const { return peek(1).kind == kind; }
    bool at_soft_keyword(std::string_view word) const;
    std::string_view text(const Token& token) const;
    Mark mark() const { return peek().span; }
    Token take();
    bool accept(Tok kind);
    Token expect(Tok kind);
    std::string expect_name();
    [[noreturn]] void fail(std::string message) const;
    [[noreturn]] void fail(const Span& span, std::string message) const;
    [[noreturn]] void fail_unexpected() const;

    // Gives the node its place, from `begin` to the last token read, and its height.
    template <class T>
    void place(T& node, const Mark& begin) {
        node.span = begin;
        node.span.end = std::max(last_end_, begin.begin);
        set_height(node);
    }
    template <class T>
    void set_height(T& node) {
        int height = 0;
        auto higher = [&](const Node& child) { height = std::max(height, child.height + 1); };
        fields(node, ChildVisitor<decltype(higher)>{higher});
        if (height > kMaxTreeHeight) {
            fail(node.span, "too deeply nested");
        }
        node.height = static_cast<std::uint16_t>(height);
    }
    template <class T>
    std::unique_ptr<T> placed(std::unique_ptr<T> node, const Mark& begin) {
        place(*node, begin);
        return node;
    }

    // expressions.cpp
    ExprPtr expression();
    ExprPtr named_expression();
    ExprPtr disjunction();
    ExprPtr conjunction();
    ExprPtr inversion();
    ExprPtr comparison();
    ExprPtr bitwise_or() { return binary(0); }
    ExprPtr binary(int lowest);
    ExprPtr factor();
    ExprPtr power();
    ExprPtr await_primary();
    ExprPtr lambda();
    ExprPtr yield_expression();
    ExprPtr starred();
    ExprPtr star_expression();
    ExprPtr star_expressions();
    ExprPtr star_named_expression();
    ExprPtr yield_or_star_expressions();
    bool at_expression() const;

    // primaries.cpp
    ExprPtr primary();
    ExprPtr call(ExprPtr func, const Mark& begin);
    void call_arguments(std::vector<ExprPtr>& args, std::vector<Keyword>& keywords);
    ExprPtr subscript(ExprPtr value, const Mark& begin);
    ExprPtr slices();
    ExprPtr slice();
    ExprPtr atom();
    ExprPtr name();
    ExprPtr number();
    ExprPtr constant(ConstantValue value);
    ExprPtr group_tuple_or_generator();
    ExprPtr list_or_comprehension();
    ExprPtr dict_or_set();
    ExprPtr set_rest(ExprPtr first, const Mark& begin);
    ExprPtr dict_rest(ExprPtr first, const Mark& begin);
    bool at_comprehension() const;
    std::vector<Comprehension> comprehensions();

    // strings.cpp
    struct StringPieces {
        std::vector<ExprPtr> values;
        std::string text;  // read, but not yet a value
        bool has_named_escape = false;
        bool u_prefix = false;
        Mark begin;
    };
    ExprPtr strings();
    ExprPtr bytes_literals();
    void string_literal(StringPieces& pieces);
    void fstring(StringPieces& pieces);
    void fstring_parts(StringPieces& pieces, bool raw, Tok end);
    void replacement_field(StringPieces& pieces, bool raw);
    int conversion();
    ExprPtr format_spec(const StringPieces& outer, bool raw);
    void flush_text(StringPieces& pieces);

    // targets.cpp
    void set_context(Expr& target, ExprContext context);
    [[noreturn]] void fail_target(const Expr& target, ExprContext context) const;
    ExprPtr star_targets(Tok end);

    // simple_statements.cpp
    void simple_statements(Block& block);
    StmtPtr simple_statement();
    StmtPtr expression_statement();
    StmtPtr assignment(ExprPtr first, const Mark& begin);
    StmtPtr annotated_assignment(ExprPtr target, const Mark& begin);
    StmtPtr return_statement();
    StmtPtr raise_statement();
    StmtPtr delete_statement();
    StmtPtr assert_statement();
    StmtPtr import_statement();
    StmtPtr import_from_statement();
    std::string dotted_name();
    StmtPtr type_alias();
    template <class T>
    StmtPtr scope_statement();
    template <class T>
    StmtPtr bare_statement();

    // statements.cpp
    void statement(Block& block);
    StmtPtr compound_statement();
    Block block(std::string_view what, const Span& header);
    StmtPtr if_statement();
    StmtPtr while_statement();
    Block else_block();
    StmtPtr async_statement();
    template <class T>
    StmtPtr for_statement(const Mark& begin);
    template <class T>
    StmtPtr with_statement(const Mark& begin);
    std::vector<WithItem> with_items();
    bool at_parenthesized_with_items() const;
    WithItem with_item();
    StmtPtr try_statement();
    template <class T>
    StmtPtr try_rest(Block body, const Mark& begin);
    ExceptHandler except_handler(bool star);

    // definitions.cpp
    StmtPtr decorated();
    template <class T>
    StmtPtr function_def(std::vector<ExprPtr> decorators, const Mark& begin);
    StmtPtr class_def(std::vector<ExprPtr> decorators, const Mark& begin);
    StmtPtr function_or_class(std::vector<ExprPtr> decorators);
    Arguments parameters(Tok end, bool annotated);
    Arg parameter(bool annotated, bool star_annotation = false);
    std::vector<TypeParamPtr> type_params();
    TypeParamPtr type_param();

    // match.cpp
    bool at_match_statement() const;
    StmtPtr match_statement();
    ExprPtr match_subject();
    MatchCase match_case();
    PatternPtr open_pattern();
    PatternPtr as_pattern();
    PatternPtr or_pattern();
    PatternPtr closed_pattern();
    PatternPtr maybe_star_pattern();
    PatternPtr sequence_or_group(Tok close);
    PatternPtr mapping_pattern();
    PatternPtr name_or_value_pattern();
    PatternPtr class_pattern(ExprPtr cls, const Mark& begin);
    PatternPtr literal_pattern();
    PatternPtr singleton_pattern(ConstantValue value);
    ExprPtr literal_expression();
    ExprPtr signed_number();

    std::string_view source_;
    std::vector<Token> tokens_;
    std::string lexer_error_;
    std::size_t index_ = 0;
    std::uint32_t last_end_ =
        0;  // of the last token read that is not a line end or (un)indentation
    int depth_ = 0;
};

}  // namespace twinkle::python
