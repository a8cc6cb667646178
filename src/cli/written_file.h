#pragma once
// What a worker says that it has written, held against what is there.

#include "base/json.h"
#include "protocol/request.h"

namespace twinkle::cli {

// Takes "written" out of the result. Throws Error(failed) where the request names an output, and
// the file there is not the one that the worker has written.
void require_written(base::Json& result, const protocol::Request& request);

}  // namespace twinkle::cli
