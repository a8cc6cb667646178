#pragma once
// fields(node, visitor) calls the visitor with each field of the node, in the order of Python's
// `ast`; visit(node, f) calls f with the node as its own type. What treats all nodes alike (the
// dump, heights, walking) is written once with these two.

#include "python/syntax_tree.h"

#include <cstdlib>
#include <type_traits>

namespace twinkle::python {

// clang-format off
template <class V> void fields(const Module& n, V&& v) { v(n.body); }

template <NodeKind K, class V> void fields(const FunctionDefOf<K>& n, V&& v) {
    v(n.name); v(n.args); v(n.body); v(n.decorator_list); v(n.returns); v(n.type_params);
}
template <class V> void fields(const ClassDef& n, V&& v) {
    v(n.name); v(n.bases); v(n.keywords); v(n.body); v(n.decorator_list); v(n.type_params);
}
template <class V> void fields(const Return& n, V&& v) { v(n.value); }
template <class V> void fields(const Delete& n, V&& v) { v(n.targets); }
template <class V> void fields(const Assign& n, V&& v) { v(n.targets); v(n.value); }
template <class V> void fields(const TypeAlias& n, V&& v) { v(n.name); v(n.type_params); v(n.value); }
template <class V> void fields(const AugAssign& n, V&& v) { v(n.target); v(n.op); v(n.value); }
template <class V> void fields(const AnnAssign& n, V&& v) {
    v(n.target); v(n.annotation); v(n.value); v(n.simple);
}
template <NodeKind K, class V> void fields(const ForOf<K>& n, V&& v) {
    v(n.target); v(n.iter); v(n.body); v(n.orelse);
}
template <class V> void fields(const While& n, V&& v) { v(n.test); v(n.body); v(n.orelse); }
template <class V> void fields(const If& n, V&& v) { v(n.test); v(n.body); v(n.orelse); }
template <NodeKind K, class V> void fields(const WithOf<K>& n, V&& v) { v(n.items); v(n.body); }
template <class V> void fields(const Match& n, V&& v) { v(n.subject); v(n.cases); }
template <class V> void fields(const Raise& n, V&& v) { v(n.exc); v(n.cause); }
template <NodeKind K, class V> void fields(const TryOf<K>& n, V&& v) {
    v(n.body); v(n.handlers); v(n.orelse); v(n.finalbody);
}
template <class V> void fields(const Assert& n, V&& v) { v(n.test); v(n.msg); }
template <class V> void fields(const Import& n, V&& v) { v(n.names); }
template <class V> void fields(const ImportFrom& n, V&& v) { v(n.module); v(n.names); v(n.level); }
template <class V> void fields(const Global& n, V&& v) { v(n.names); }
template <class V> void fields(const Nonlocal& n, V&& v) { v(n.names); }
template <class V> void fields(const ExprStmt& n, V&& v) { v(n.value); }
template <class V> void fields(const Pass&, V&&) {}
template <class V> void fields(const Break&, V&&) {}
template <class V> void fields(const Continue&, V&&) {}

template <class V> void fields(const BoolOp& n, V&& v) { v(n.op); v(n.values); }
template <class V> void fields(const NamedExpr& n, V&& v) { v(n.target); v(n.value); }
template <class V> void fields(const BinOp& n, V&& v) { v(n.left); v(n.op); v(n.right); }
template <class V> void fields(const UnaryOp& n, V&& v) { v(n.op); v(n.operand); }
template <class V> void fields(const Lambda& n, V&& v) { v(n.args); v(n.body); }
template <class V> void fields(const IfExp& n, V&& v) { v(n.test); v(n.body); v(n.orelse); }
template <class V> void fields(const Dict& n, V&& v) { v(n.keys); v(n.values); }
template <class V> void fields(const Set& n, V&& v) { v(n.elts); }
template <class V> void fields(const ListComp& n, V&& v) { v(n.elt); v(n.generators); }
template <class V> void fields(const SetComp& n, V&& v) { v(n.elt); v(n.generators); }
template <class V> void fields(const DictComp& n, V&& v) { v(n.key); v(n.value); v(n.generators); }
template <class V> void fields(const GeneratorExp& n, V&& v) { v(n.elt); v(n.generators); }
template <class V> void fields(const Await& n, V&& v) { v(n.value); }
template <class V> void fields(const Yield& n, V&& v) { v(n.value); }
template <class V> void fields(const YieldFrom& n, V&& v) { v(n.value); }
template <class V> void fields(const Compare& n, V&& v) { v(n.left); v(n.ops); v(n.comparators); }
template <class V> void fields(const Call& n, V&& v) { v(n.func); v(n.args); v(n.keywords); }
template <class V> void fields(const FormattedValue& n, V&& v) {
    v(n.value); v(n.conversion); v(n.format_spec);
}
template <class V> void fields(const JoinedStr& n, V&& v) { v(n.values); }
template <class V> void fields(const Constant& n, V&& v) { v(n.value); v(n.u_prefix ? "u" : ""); }
template <class V> void fields(const Attribute& n, V&& v) { v(n.value); v(n.attr); v(n.ctx); }
template <class V> void fields(const Subscript& n, V&& v) { v(n.value); v(n.slice); v(n.ctx); }
template <class V> void fields(const Starred& n, V&& v) { v(n.value); v(n.ctx); }
template <class V> void fields(const Name& n, V&& v) { v(n.id); v(n.ctx); }
template <class V> void fields(const List& n, V&& v) { v(n.elts); v(n.ctx); }
template <class V> void fields(const Tuple& n, V&& v) { v(n.elts); v(n.ctx); }
template <class V> void fields(const Slice& n, V&& v) { v(n.lower); v(n.upper); v(n.step); }

template <class V> void fields(const Comprehension& n, V&& v) {
    v(n.target); v(n.iter); v(n.ifs); v(n.is_async);
}
template <class V> void fields(const ExceptHandler& n, V&& v) { v(n.type); v(n.name); v(n.body); }
template <class V> void fields(const Arguments& n, V&& v) {
    v(n.posonlyargs); v(n.args); v(n.vararg); v(n.kwonlyargs); v(n.kw_defaults); v(n.kwarg);
    v(n.defaults);
}
template <class V> void fields(const Arg& n, V&& v) { v(n.arg); v(n.annotation); }
template <class V> void fields(const Keyword& n, V&& v) { v(n.arg); v(n.value); }
template <class V> void fields(const Alias& n, V&& v) { v(n.name); v(n.asname.value_or("")); }
template <class V> void fields(const WithItem& n, V&& v) { v(n.context_expr); v(n.optional_vars); }
template <class V> void fields(const MatchCase& n, V&& v) { v(n.pattern); v(n.guard); v(n.body); }
template <class V> void fields(const MatchValue& n, V&& v) { v(n.value); }
template <class V> void fields(const MatchSingleton& n, V&& v) { v(n.value); }
template <class V> void fields(const MatchSequence& n, V&& v) { v(n.patterns); }
template <class V> void fields(const MatchMapping& n, V&& v) { v(n.keys); v(n.patterns); v(n.rest); }
template <class V> void fields(const MatchClass& n, V&& v) {
    v(n.cls); v(n.patterns); v(n.kwd_attrs); v(n.kwd_patterns);
}
template <class V> void fields(const MatchStar& n, V&& v) { v(n.name); }
template <class V> void fields(const MatchAs& n, V&& v) { v(n.pattern); v(n.name); }
template <class V> void fields(const MatchOr& n, V&& v) { v(n.patterns); }
template <class V> void fields(const TypeVar& n, V&& v) { v(n.name); v(n.bound); v(n.default_value); }
template <class V> void fields(const ParamSpec& n, V&& v) { v(n.name); v(n.default_value); }
template <class V> void fields(const TypeVarTuple& n, V&& v) { v(n.name); v(n.default_value); }
// clang-format on

template <class F>
void visit(const Node& node, F&& f) {
    switch (node.kind) {
#define TWINKLE_X(name) \
    case NodeKind::name: f(static_cast<const name&>(node)); return;
        TWINKLE_PYTHON_NODES(TWINKLE_X)
#undef TWINKLE_X
    }
    std::abort();  // not a kind
}

// Calls f(const Node&) for each node directly below one, out of the fields passed to it.
template <class F>
struct ChildVisitor {
    F& f;

    template <class T>
    void operator()(const std::unique_ptr<T>& child) const {
        if (child) f(static_cast<const Node&>(*child));
    }
    template <class T>
    void operator()(const std::vector<T>& list) const {
        if constexpr (!std::is_enum_v<T> && !std::is_same_v<T, std::string>) {
            for (const auto& item : list) (*this)(item);
        }
    }
    template <class T>
    void operator()(const T& value) const {
        if constexpr (std::is_base_of_v<Node, T>) f(static_cast<const Node&>(value));
    }
};

}  // namespace twinkle::python
