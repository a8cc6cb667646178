#pragma once
// Parts of what this folder reads, strictly and with the place of what is wrong.

#include <string>
#include <string_view>

#include "base/document.h"
#include "base/json.h"
#include "twinkle/invocation.h"

namespace twinkle::tuning {

// Entries are small: more is not ours.
inline constexpr base::JsonLimits entry_limits{.bytes = 256u << 10, .depth = 8};

// A table of truth values, integers, finite numbers and texts. `what` names it in messages.
base::Json flat_table(const base::Node& node, std::string_view origin, std::string_view what);

Invocation read_invocation(const base::Node& node, std::string_view origin);
base::Json invocation_json(const Invocation& invocation);

// `seconds` and the like: an integer of 0 or more.
std::int64_t required_count(base::TableReader& reader, std::string_view key);

}  // namespace twinkle::tuning
