#pragma once
// twinkle tune --from: what a server has recorded, as inputs of a model, and as calls of
// operations.

#include "cli/command.h"
#include "protocol/request.h"
#include "tuning/record_file.h"

namespace twinkle::cli {

Option from_option();
Option recorded_option();
Option shard_option();

// "2/8". Throws Error(malformed).
tuning::Shard checked_shard(const Arguments& arguments);

// Runs of the record as inputs of the request's model, as those that are given, or after them. Of
// integers the values are in the ranges of the given ones, which may be a description; else 0 and
// 1. Throws Error: not_found, malformed (no run of a model, or of several).
void add_recorded_runs(protocol::Request& request, const Arguments& arguments, Console& console);

// The calls of executors in a record: those of the bundled kernels are tuned.
int run_tune_operations(const Arguments& arguments, Console& console);

}  // namespace twinkle::cli
