#pragma once
// Inputs beside the first: --inputs that is given several times.

#include "protocol/request.h"
#include "runtime/verify/verification_context.h"

namespace twinkle::worker {

// Each becomes a size to compare and measure in.
void add_more_inputs(const protocol::Request& request, runtime::VerificationContext& context);

// The number for the next size that is made by itself.
std::size_t next_number(const std::vector<runtime::SizeVariant>& sizes);

}  // namespace twinkle::worker
