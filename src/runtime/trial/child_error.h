#pragma once
// What a child process that foreign code runs in reports as its Error.

#include "base/json.h"
#include "twinkle/error.h"

namespace twinkle::runtime {

// Bounded and fit for a terminal, whatever the child has written; a code that no child should
// report is `refused`.
Error error_of_child(const base::Json& json);

}  // namespace twinkle::runtime
