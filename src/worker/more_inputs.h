#pragma once
// Inputs beside the first: --inputs that is given several times.

#include "protocol/request.h"
#include "runtime/verify/verification_context.h"
#include "worker/channel.h"

namespace twinkle::worker {

// Each becomes a size to compare and measure in.
void add_more_inputs(const protocol::Request& request, runtime::VerificationContext& context);

// Throws Error(malformed) where one of `given` is not among those that the original accepts: unlike
// a size that is made up, these are what the model must get. Of recorded calls, which may have
// failed on the server, as well, it warns.
void refuse_lost_inputs(const protocol::Request& request, const Channel& channel,
                        const std::vector<runtime::SizeVariant>& given,
                        const std::vector<runtime::SizeVariant>& accepted);

// A recorded call may have failed on the server: of the first inputs, which the original does not
// take, it warns, and the next call of the record takes their place. False: there is none.
bool use_next_recorded(const Channel& channel, const std::string& why,
                       runtime::VerificationContext& context);

// The number for the next size that is made by itself.
std::size_t next_number(const std::vector<runtime::SizeVariant>& sizes);

}  // namespace twinkle::worker
