#pragma once
// An Error on its way between processes, and to programs that read JSON.

#include "base/json.h"
#include "twinkle/error.h"

#include <span>

namespace twinkle::protocol {

// {"code", "what", "where", "why", "hint"}
base::Json to_json(const Error& error);

// Bounded, whatever another process has written. A code that is none of those believed of it is
// `otherwise`.
Error error_of(const base::Json& json, std::span<const ErrorCode> believed, ErrorCode otherwise);

}  // namespace twinkle::protocol
