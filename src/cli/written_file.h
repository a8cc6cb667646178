#pragma once
// Checks the file that a worker says it has written against the one on disk.

#include "base/json.h"
#include "protocol/request.h"

namespace twinkle::cli {

// Takes "written" out of the result. Throws Error(failed) if the request names an output, and the
// file there is not the one that the worker has written.
void require_written(base::Json& result, const protocol::Request& request);

}  // namespace twinkle::cli
