#pragma once
// Which sites compute with fewer bits, so that the model's error stays below the request's.

#include "worker/kernelizing.h"

namespace twinkle::worker {

// Takes a model whose exact sites are verified. Measures the error of every site in every precision
// that is asked for, then takes the cheapest first (error against bytes) as long as the whole
// model, run on all inputs, stays within the error. The same inputs give the same sites. Returns
// what the report says of it; the context asks for the error from then on.
base::Json fit_precision(Kernelizing& kernelizing, Kernelized& made,
                         runtime::VerificationContext& context, const Request& request,
                         const Channel& channel);

}  // namespace twinkle::worker
