#pragma once
// The commands that need LibTorch. Each takes the request, tells the channel what it does, and
// returns its result.

#include "base/json.h"
#include "protocol/request.h"
#include "worker/channel.h"

namespace twinkle::worker {

using protocol::Request;

base::Json kernelize_command(const Request& request, const Channel& channel);
base::Json bench_command(const Request& request, const Channel& channel);
base::Json convert_command(const Request& request, const Channel& channel);
base::Json run_command(const Request& request, const Channel& channel);
base::Json inspect_command(const Request& request, const Channel& channel);
base::Json check_command(const Request& request, const Channel& channel);
base::Json inspect_kernel_command(const Request& request, const Channel& channel);
base::Json compile_kernel_command(const Request& request, const Channel& channel);
base::Json kernel_operators_command(const Request& request, const Channel& channel);
base::Json tune_operations_command(const Request& request, const Channel& channel);

}  // namespace twinkle::worker
