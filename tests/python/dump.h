#pragma once
// A syntax tree as JSON, in a form that a few lines of Python make from `ast` as well.

#include "python/syntax_tree.h"

#include <string>

namespace twinkle::python {

struct DumpOptions {
    bool spans = true;
    // CPython before 3.12 gives wrong places inside f-strings.
    bool fstring_spans = true;
};

// Compact JSON, all ASCII. A node is an array: its name in `ast`, its first and last byte where
// `ast` gives the place of such nodes, then its fields in the order of `ast` (without type
// comments). Values: a missing node or name is null; an operator or context is its name; floats are
// {"float": the 16 hex digits of the IEEE value}, {"imag": …}, {"bytes": hex}, {"big": the
// literal},
// {"ellipsis": 1}.
std::string dump(const Node& node, DumpOptions options = {});

}  // namespace twinkle::python
