#pragma once
// kernelize --tune: which candidate of each site is the fastest, in which size of its inputs.

#include "protocol/request.h"
#include "worker/kernelizing.h"

namespace twinkle::worker {

inline constexpr double usual_tuning_seconds = 20;

// Verifies and measures the candidates of each site, as far as the user's store does not know them
// and the request's time lasts, and makes the model of the fastest. The sizes in which that was
// done and that the original accepts stay in the context.
void tune_sites(Kernelizing& kernelizing, Kernelized& made, runtime::VerificationContext& context,
                const Request& request, const Channel& channel);

}  // namespace twinkle::worker
