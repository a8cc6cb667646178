#pragma once
// How much faster a kernelized model is than its original: measured shortly, in a child.

#include "base/json.h"
#include "protocol/request.h"
#include "twinkle/kernelize.h"
#include "worker/channel.h"
#include "worker/kernelizing.h"

namespace twinkle::worker {

// Returns "whole" of a report: "runs", "threads", "original_us", "kernelized_us" and "speedup",
// null where nothing was measured, and "not_measured", why; "busy": other programs leave no core
// free. What cannot be measured is Error where the request is strict, else a warning.
base::Json whole_speed(const Request& request, const Channel& channel,
                       const Kernelizing& kernelizing, Kernelized& made,
                       runtime::VerificationContext context, double load_before);

}  // namespace twinkle::worker
