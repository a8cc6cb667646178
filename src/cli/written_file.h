#pragma once
// What a worker says that it has written, held against what is there.

#include <string>

#include "base/json.h"

namespace twinkle::cli {

// Takes "written" out of the result. Throws Error(failed) where the request names an output, and
// the file there is not the one that the worker has written.
void require_written(base::Json& result, const base::Json& request);

}  // namespace twinkle::cli
