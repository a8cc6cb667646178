#pragma once
// The options of kernelize that allow fewer bits, within an error that the user names.

#include "base/json.h"
#include "cli/command.h"
#include "protocol/request.h"

namespace twinkle::cli {

Option precision_option();
Option max_error_option();
Option agree_option();

// Throws Error(malformed). After add_verification(), as it needs to know what is compared.
void add_precision(protocol::Request& request, const Arguments& arguments);

// "precision: int8 in 57 of 57 layers, error 0.0121 of 0.02 (the original's: 3.1e-07); weights 104
// MB, before 411 MB"; empty: none was asked for.
std::string precision_line(const base::Json& report);

}  // namespace twinkle::cli
