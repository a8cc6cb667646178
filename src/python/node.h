#pragma once
// What every node of a Python syntax tree has: its kind, its place in the source, a safe downcast.

#include <cstdint>
#include <memory>
#include <string_view>

namespace twinkle::python {

// Half-open byte range of the source, with the line and byte column (both from 1) where it begins.
struct Span {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::uint32_t line = 1;
    std::uint32_t column = 1;
};

// Every node type, once. The names are those of Python's `ast`; only its statement `Expr` is called
// ExprStmt, because Expr is the base of expressions here.
// clang-format off
#define TWINKLE_PYTHON_NODES(X) \
    X(Module) X(FunctionDef) X(AsyncFunctionDef) X(ClassDef) X(Return) X(Delete) X(Assign) \
    X(TypeAlias) X(AugAssign) X(AnnAssign) X(For) X(AsyncFor) X(While) X(If) X(With) \
    X(AsyncWith) X(Match) X(Raise) X(Try) X(TryStar) X(Assert) X(Import) X(ImportFrom) X(Global) \
    X(Nonlocal) X(ExprStmt) X(Pass) X(Break) X(Continue) X(BoolOp) X(NamedExpr) X(BinOp) \
    X(UnaryOp) X(Lambda) X(IfExp) X(Dict) X(Set) X(ListComp) X(SetComp) X(DictComp) \
    X(GeneratorExp) X(Await) X(Yield) X(YieldFrom) X(Compare) X(Call) X(FormattedValue) \
    X(JoinedStr) X(Constant) X(Attribute) X(Subscript) X(Starred) X(Name) X(List) X(Tuple) \
    X(Slice) X(Comprehension) X(ExceptHandler) X(Arguments) X(Arg) X(Keyword) X(Alias) \
    X(WithItem) X(MatchCase) X(MatchValue) X(MatchSingleton) X(MatchSequence) X(MatchMapping) \
    X(MatchClass) X(MatchStar) X(MatchAs) X(MatchOr) X(TypeVar) X(ParamSpec) X(TypeVarTuple)
// clang-format on

enum class NodeKind : std::uint8_t {
#define TWINKLE_X(name) name,
    TWINKLE_PYTHON_NODES(TWINKLE_X)
#undef TWINKLE_X
};

// The class name in Python's `ast`: "FunctionDef", "Expr" for ExprStmt, "arguments", "alias", …
std::string_view kind_name(NodeKind kind);

struct Node {
    explicit Node(NodeKind node_kind) : kind(node_kind) {}
    virtual ~Node() = default;
    Node(Node&&) = default;
    Node& operator=(Node&&) = default;

    NodeKind kind;
    // The longest way down to a leaf. The parser refuses what exceeds kMaxTreeHeight, so recursion
    // over a tree (its destruction too) cannot exhaust the stack.
    std::uint16_t height = 0;
    Span span;
};

inline constexpr std::uint16_t kMaxTreeHeight = 1000;

struct Expr : Node {
    using Node::Node;
};
struct Stmt : Node {
    using Node::Node;
};
struct Pattern : Node {
    using Node::Node;
};
struct TypeParam : Node {
    using Node::Node;
};

using ExprPtr = std::unique_ptr<Expr>;
using StmtPtr = std::unique_ptr<Stmt>;
using PatternPtr = std::unique_ptr<Pattern>;
using TypeParamPtr = std::unique_ptr<TypeParam>;

// A base that knows the kind of the type derived from it; as<T> relies on it instead of RTTI.
template <NodeKind K, class Base>
struct Kinded : Base {
    static constexpr NodeKind kKind = K;
    Kinded() : Base(K) {}
};

// The node as a T, or nullptr if it is of another kind (or there is no node).
template <class T>
const T* as(const Node& node) {
    return node.kind == T::kKind ? static_cast<const T*>(&node) : nullptr;
}
template <class T>
const T* as(const Node* node) {
    return node ? as<T>(*node) : nullptr;
}
template <class T, class Base>
const T* as(const std::unique_ptr<Base>& node) {
    return as<T>(node.get());
}
template <class T>
T* as(Node& node) {
    return node.kind == T::kKind ? static_cast<T*>(&node) : nullptr;
}

}  // namespace twinkle::python
