#pragma once
// The patterns of match statements and the type parameters of PEP 695, as in Python's `ast`.

#include "python/expressions.h"

#include <string>
#include <vector>

namespace twinkle::python {

template <NodeKind K>
using PatternOf = Kinded<K, Pattern>;

struct MatchValue final : PatternOf<NodeKind::MatchValue> {
    ExprPtr value;
};
struct MatchSingleton final : PatternOf<NodeKind::MatchSingleton> {
    ConstantValue value;  // None, True or False
};
struct MatchSequence final : PatternOf<NodeKind::MatchSequence> {
    std::vector<PatternPtr> patterns;
};
struct MatchMapping final : PatternOf<NodeKind::MatchMapping> {
    std::vector<ExprPtr> keys;
    std::vector<PatternPtr> patterns;
    std::string rest;  // may be empty
};
struct MatchClass final : PatternOf<NodeKind::MatchClass> {
    ExprPtr cls;
    std::vector<PatternPtr> patterns;
    std::vector<std::string> kwd_attrs;
    std::vector<PatternPtr> kwd_patterns;
};
struct MatchStar final : PatternOf<NodeKind::MatchStar> {
    std::string name;  // empty for *_
};
struct MatchAs final : PatternOf<NodeKind::MatchAs> {
    PatternPtr pattern;  // may be null
    std::string name;    // empty for _
};
struct MatchOr final : PatternOf<NodeKind::MatchOr> {
    std::vector<PatternPtr> patterns;
};

struct TypeVar final : Kinded<NodeKind::TypeVar, TypeParam> {
    std::string name;
    ExprPtr bound;          // may be null
    ExprPtr default_value;  // may be null
};
struct ParamSpec final : Kinded<NodeKind::ParamSpec, TypeParam> {
    std::string name;
    ExprPtr default_value;
};
struct TypeVarTuple final : Kinded<NodeKind::TypeVarTuple, TypeParam> {
    std::string name;
    ExprPtr default_value;
};

}  // namespace twinkle::python
