#include "python/node.h"

namespace twinkle::python {

std::string_view kind_name(NodeKind kind) {
    switch (kind) {
        case NodeKind::ExprStmt: return "Expr";
        case NodeKind::Comprehension: return "comprehension";
        case NodeKind::Arguments: return "arguments";
        case NodeKind::Arg: return "arg";
        case NodeKind::Keyword: return "keyword";
        case NodeKind::Alias: return "alias";
        case NodeKind::WithItem: return "withitem";
        case NodeKind::MatchCase: return "match_case";
        default: break;
    }
    switch (kind) {
#define TWINKLE_X(name) \
    case NodeKind::name: return #name;
        TWINKLE_PYTHON_NODES(TWINKLE_X)
#undef TWINKLE_X
    }
    return "?";
}

}  // namespace twinkle::python
