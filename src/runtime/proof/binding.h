#pragma once
// The ways of calling a substitute for a function with the inputs of a region. A trace keeps
// neither the names nor the order of a function's arguments, so that each way is tried.

#include "runtime/graph/result_like.h"
#include "runtime/source/substitutes.h"
#include "runtime/trace/region.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace twinkle::runtime {

// The value that one parameter gets.
struct ParameterSource {
    enum class Kind { omitted, input, scalar };
    Kind kind = Kind::omitted;
    std::size_t index = 0;  // into the inputs or the scalars of the region

    bool operator==(const ParameterSource&) const = default;
};

struct CallBinding {
    std::size_t substitute = 0;
    std::vector<ParameterSource> sources;  // by parameter, behind the one it writes into
    std::optional<ResultLike> out;  // output tensor to pass: `argument` is an input of the region
    std::size_t unusual = 0;  // scalars given though there is a default, inputs given twice, …
    // For each result of the region, its index among the returned values; those that are not
    // returned are computed by the original nodes.
    std::vector<std::optional<std::size_t>> results;
};

bool is_list_of_tensors(const c10::TypePtr& type);
// Whether its only result is a list, which is then compared, and returned, as one value.
bool gives_list(const Region& region);

// The constants of a region that may have been arguments; both booleans and None.
std::vector<c10::IValue> scalars_of(const Region& region);

// The ways of calling a substitute, the most likely first, at most `limit`: every input tensor is
// used, under its own name if there is one, in the order of first use, with defaults. `skipped`:
// leading parameters that are not bound.
std::vector<CallBinding> bindings_of(const Region& region, const Substitute& substitute,
                                     std::size_t skipped, std::size_t limit);

}  // namespace twinkle::runtime
