#pragma once
// The options of kernelize that say whether and how its result is compared with the original: for
// its values, and for its time.

#include "base/json.h"
#include "cli/command.h"
#include "protocol/request.h"

namespace twinkle::cli {

Option verify_option();
Option no_verify_option();
Option tolerance_option();
Option tune_option();
Option budget_option();
Option no_measure_option();
Option tune_sizes_option();

// What --budget and --tune-sizes say. Throws Error(malformed).
void add_tuning_limits(protocol::Request& request, const Arguments& arguments);

// Adds them to a request: inputs turn verification on, except for another machine. Throws
// Error(malformed).
void add_verification(protocol::Request& request, const Arguments& arguments);

// The last lines of a report: how much faster the model is, and the shapes on which it was compared
// with its original; or that it was not, and how to do so.
std::string verification_text(const protocol::Request& request, const base::Json& report,
                              std::size_t columns);

}  // namespace twinkle::cli
