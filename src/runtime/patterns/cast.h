#pragma once
// Changes of the dtype in a flat graph.

#include "runtime/patterns/flat_graph.h"

#include <optional>

namespace twinkle::runtime {

// A cast to a dtype that is known, or to that of another tensor.
struct Cast {
    FlatInput value;
    c10::ScalarType known = c10::ScalarType::Undefined;
    std::optional<FlatInput> like;
    std::int32_t dtype_node = nothing;  // reads the dtype of `like`
};

// None: the node is something else, or casts to a dtype that only running it tells.
std::optional<Cast> as_cast(const FlatGraph& graph, const FlatNode& node);

// What a value is a cast of, through all casts.
ValueId behind_casts(const FlatGraph& graph, ValueId id);

}  // namespace twinkle::runtime
