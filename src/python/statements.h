#pragma once
// The statements of Python's `ast`, with its names and fields.

#include "python/expressions.h"
#include "python/patterns.h"

#include <optional>
#include <string>
#include <vector>

namespace twinkle::python {

template <NodeKind K>
using StmtOf = Kinded<K, Stmt>;
using Block = std::vector<StmtPtr>;

struct Module final : Kinded<NodeKind::Module, Node> {
    Block body;
};

// def and async def have the same fields but are told apart by kind, so that code which handles the
// one cannot take the other for it by mistake. The same holds for for, with and try below.
template <NodeKind K>
struct FunctionDefOf : StmtOf<K> {
    std::string name;
    Arguments args;
    Block body;
    std::vector<ExprPtr> decorator_list;
    ExprPtr returns;  // may be null
    std::vector<TypeParamPtr> type_params;
};
struct FunctionDef final : FunctionDefOf<NodeKind::FunctionDef> {};
struct AsyncFunctionDef final : FunctionDefOf<NodeKind::AsyncFunctionDef> {};

struct ClassDef final : StmtOf<NodeKind::ClassDef> {
    std::string name;
    std::vector<ExprPtr> bases;
    std::vector<Keyword> keywords;
    Block body;
    std::vector<ExprPtr> decorator_list;
    std::vector<TypeParamPtr> type_params;
};
struct Return final : StmtOf<NodeKind::Return> {
    ExprPtr value;  // may be null
};
struct Delete final : StmtOf<NodeKind::Delete> {
    std::vector<ExprPtr> targets;
};
struct Assign final : StmtOf<NodeKind::Assign> {
    std::vector<ExprPtr> targets;
    ExprPtr value;
};
struct TypeAlias final : StmtOf<NodeKind::TypeAlias> {
    ExprPtr name;
    std::vector<TypeParamPtr> type_params;
    ExprPtr value;
};
struct AugAssign final : StmtOf<NodeKind::AugAssign> {
    ExprPtr target;
    Operator op{};
    ExprPtr value;
};
struct AnnAssign final : StmtOf<NodeKind::AnnAssign> {
    ExprPtr target;
    ExprPtr annotation;
    ExprPtr value;        // may be null
    bool simple = false;  // the target is a name without parentheses
};

template <NodeKind K>
struct ForOf : StmtOf<K> {
    ExprPtr target;
    ExprPtr iter;
    Block body;
    Block orelse;
};
struct For final : ForOf<NodeKind::For> {};
struct AsyncFor final : ForOf<NodeKind::AsyncFor> {};

struct While final : StmtOf<NodeKind::While> {
    ExprPtr test;
    Block body;
    Block orelse;
};
struct If final : StmtOf<NodeKind::If> {
    ExprPtr test;
    Block body;
    Block orelse;  // elif is a single If in here
};

struct WithItem final : Kinded<NodeKind::WithItem, Node> {
    ExprPtr context_expr;
    ExprPtr optional_vars;  // may be null
};
template <NodeKind K>
struct WithOf : StmtOf<K> {
    std::vector<WithItem> items;
    Block body;
};
struct With final : WithOf<NodeKind::With> {};
struct AsyncWith final : WithOf<NodeKind::AsyncWith> {};

struct MatchCase final : Kinded<NodeKind::MatchCase, Node> {
    PatternPtr pattern;
    ExprPtr guard;  // may be null
    Block body;
};
struct Match final : StmtOf<NodeKind::Match> {
    ExprPtr subject;
    std::vector<MatchCase> cases;
};

struct Raise final : StmtOf<NodeKind::Raise> {
    ExprPtr exc;  // may be null
    ExprPtr cause;
};
struct ExceptHandler final : Kinded<NodeKind::ExceptHandler, Node> {
    ExprPtr type;      // null for a bare except
    std::string name;  // may be empty
    Block body;
};
template <NodeKind K>
struct TryOf : StmtOf<K> {
    Block body;
    std::vector<ExceptHandler> handlers;
    Block orelse;
    Block finalbody;
};
struct Try final : TryOf<NodeKind::Try> {};
struct TryStar final : TryOf<NodeKind::TryStar> {};

struct Assert final : StmtOf<NodeKind::Assert> {
    ExprPtr test;
    ExprPtr msg;  // may be null
};

struct Alias final : Kinded<NodeKind::Alias, Node> {
    std::string name;  // dotted in Import, "*" for a star import
    std::optional<std::string> asname;
};
struct Import final : StmtOf<NodeKind::Import> {
    std::vector<Alias> names;
};
struct ImportFrom final : StmtOf<NodeKind::ImportFrom> {
    std::string module;  // empty for `from . import x`
    std::vector<Alias> names;
    int level = 0;  // leading dots
};
struct Global final : StmtOf<NodeKind::Global> {
    std::vector<std::string> names;
};
struct Nonlocal final : StmtOf<NodeKind::Nonlocal> {
    std::vector<std::string> names;
};
struct ExprStmt final : StmtOf<NodeKind::ExprStmt> {
    ExprPtr value;
};
struct Pass final : StmtOf<NodeKind::Pass> {};
struct Break final : StmtOf<NodeKind::Break> {};
struct Continue final : StmtOf<NodeKind::Continue> {};

}  // namespace twinkle::python
