#pragma once
// The expressions of Python's `ast`, with its names and fields.

#include "python/node.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace twinkle::python {

enum class ExprContext : std::uint8_t { Load, Store, Del };
enum class BoolOperator : std::uint8_t { And, Or };
enum class Operator : std::uint8_t {
    Add,
    Sub,
    Mult,
    MatMult,
    Div,
    Mod,
    Pow,
    LShift,
    RShift,
    BitOr,
    BitXor,
    BitAnd,
    FloorDiv
};
enum class UnaryOperator : std::uint8_t { Invert, Not, UAdd, USub };
enum class CompareOperator : std::uint8_t { Eq, NotEq, Lt, LtE, Gt, GtE, Is, IsNot, In, NotIn };

struct None {};
struct Ellipsis {};
// An integer beyond int64: the literal without underscores, in lower case ("0xffff…", "1234…").
struct BigInteger {
    std::string text;
};
struct Imaginary {
    double value = 0;
};
struct Bytes {
    std::string value;
};
// Strings are UTF-8; lone surrogates from escapes are encoded as three bytes like any other code
// point.
using ConstantValue = std::variant<None, bool, std::int64_t, BigInteger, double, Imaginary,
                                   std::string, Bytes, Ellipsis>;

template <NodeKind K>
using ExprOf = Kinded<K, Expr>;

struct Arg final : Kinded<NodeKind::Arg, Node> {
    std::string arg;
    ExprPtr annotation;  // may be null
};

struct Arguments final : Kinded<NodeKind::Arguments, Node> {
    std::vector<Arg> posonlyargs;
    std::vector<Arg> args;
    std::unique_ptr<Arg> vararg;  // may be null
    std::vector<Arg> kwonlyargs;
    std::vector<ExprPtr> kw_defaults;  // one for each of kwonlyargs, null where there is none
    std::unique_ptr<Arg> kwarg;        // may be null
    std::vector<ExprPtr> defaults;     // of the last of posonlyargs + args
};

struct Keyword final : Kinded<NodeKind::Keyword, Node> {
    std::string arg;  // empty for **value
    ExprPtr value;
};

struct Comprehension final : Kinded<NodeKind::Comprehension, Node> {
    ExprPtr target;
    ExprPtr iter;
    std::vector<ExprPtr> ifs;
    bool is_async = false;
};

struct BoolOp final : ExprOf<NodeKind::BoolOp> {
    BoolOperator op{};
    std::vector<ExprPtr> values;
};
struct NamedExpr final : ExprOf<NodeKind::NamedExpr> {
    ExprPtr target;
    ExprPtr value;
};
struct BinOp final : ExprOf<NodeKind::BinOp> {
    ExprPtr left;
    Operator op{};
    ExprPtr right;
};
struct UnaryOp final : ExprOf<NodeKind::UnaryOp> {
    UnaryOperator op{};
    ExprPtr operand;
};
struct Lambda final : ExprOf<NodeKind::Lambda> {
    Arguments args;
    ExprPtr body;
};
struct IfExp final : ExprOf<NodeKind::IfExp> {
    ExprPtr test;
    ExprPtr body;
    ExprPtr orelse;
};
struct Dict final : ExprOf<NodeKind::Dict> {
    std::vector<ExprPtr> keys;  // null for **value
    std::vector<ExprPtr> values;
};
struct Set final : ExprOf<NodeKind::Set> {
    std::vector<ExprPtr> elts;
};
struct ListComp final : ExprOf<NodeKind::ListComp> {
    ExprPtr elt;
    std::vector<Comprehension> generators;
};
struct SetComp final : ExprOf<NodeKind::SetComp> {
    ExprPtr elt;
    std::vector<Comprehension> generators;
};
struct DictComp final : ExprOf<NodeKind::DictComp> {
    ExprPtr key;
    ExprPtr value;
    std::vector<Comprehension> generators;
};
struct GeneratorExp final : ExprOf<NodeKind::GeneratorExp> {
    ExprPtr elt;
    std::vector<Comprehension> generators;
};
struct Await final : ExprOf<NodeKind::Await> {
    ExprPtr value;
};
struct Yield final : ExprOf<NodeKind::Yield> {
    ExprPtr value;  // may be null
};
struct YieldFrom final : ExprOf<NodeKind::YieldFrom> {
    ExprPtr value;
};
struct Compare final : ExprOf<NodeKind::Compare> {
    ExprPtr left;
    std::vector<CompareOperator> ops;
    std::vector<ExprPtr> comparators;
};
struct Call final : ExprOf<NodeKind::Call> {
    ExprPtr func;
    std::vector<ExprPtr> args;  // *x is a Starred
    std::vector<Keyword> keywords;
};
struct FormattedValue final : ExprOf<NodeKind::FormattedValue> {
    ExprPtr value;
    int conversion = -1;  // -1, or 's', 'r', 'a'
    ExprPtr format_spec;  // a JoinedStr, may be null
};
struct JoinedStr final : ExprOf<NodeKind::JoinedStr> {
    std::vector<ExprPtr> values;
};
struct Constant final : ExprOf<NodeKind::Constant> {
    ConstantValue value;
    bool u_prefix = false;  // `kind` of ast: the literal begins with u
    // A \N{…} escape stands in the value as it was written: there is no table of character names.
    bool has_named_escape = false;

    bool is_none() const { return std::holds_alternative<None>(value); }
    const std::string* string() const { return std::get_if<std::string>(&value); }
};
struct Attribute final : ExprOf<NodeKind::Attribute> {
    ExprPtr value;
    std::string attr;
    ExprContext ctx = ExprContext::Load;
};
struct Subscript final : ExprOf<NodeKind::Subscript> {
    ExprPtr value;
    ExprPtr slice;
    ExprContext ctx = ExprContext::Load;
};
struct Starred final : ExprOf<NodeKind::Starred> {
    ExprPtr value;
    ExprContext ctx = ExprContext::Load;
};
struct Name final : ExprOf<NodeKind::Name> {
    std::string id;
    ExprContext ctx = ExprContext::Load;
};
struct List final : ExprOf<NodeKind::List> {
    std::vector<ExprPtr> elts;
    ExprContext ctx = ExprContext::Load;
};
struct Tuple final : ExprOf<NodeKind::Tuple> {
    std::vector<ExprPtr> elts;
    ExprContext ctx = ExprContext::Load;
};
struct Slice final : ExprOf<NodeKind::Slice> {
    ExprPtr lower;  // each may be null
    ExprPtr upper;
    ExprPtr step;
};

}  // namespace twinkle::python
