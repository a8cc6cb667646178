#pragma once
// An Error on its way out of a child process.

#include "base/json.h"
#include "twinkle/error.h"

namespace twinkle::runtime {

base::Json to_json(const Error& error);

// Bounded and fit for a terminal, whatever the child has written; an unknown code is `refused`.
Error error_of(const base::Json& json);

}  // namespace twinkle::runtime
