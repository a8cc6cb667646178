#pragma once
// Going through a tree without knowing every node type.

#include "python/syntax_tree.h"

#include <functional>

namespace twinkle::python {

// Calls `f` for each node directly below `node`, in the order of Python's `ast` fields.
void for_each_child(const Node& node, const std::function<void(const Node&)>& f);

// Calls `f` for `node` and all below it, parents first. Where `f` returns false, the nodes below
// that one are left out.
void walk(const Node& node, const std::function<bool(const Node&)>& f);

}  // namespace twinkle::python
