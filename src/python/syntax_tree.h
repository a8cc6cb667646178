#pragma once
// The syntax tree of a Python source, as Python's own `ast` module would give it: the same node
// types with the same fields. Three deviations: the statement `Expr` is ExprStmt, helper nodes have
// capital names (Arguments, Arg, Keyword, Alias, …), and an optional identifier is an empty string.

#include "python/expressions.h"
#include "python/node.h"
#include "python/patterns.h"
#include "python/statements.h"
