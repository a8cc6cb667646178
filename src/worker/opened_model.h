#pragma once
// The model of a request, opened so that nothing of it runs that was not asked for.

#include "protocol/request.h"
#include "worker/channel.h"

#include <torch/script.h>

namespace twinkle::worker {

using protocol::Request;

// For commands that look at a model, or change it. Where reading it runs code of it, that is tried
// in a child process first, with a limit of time. Throws as open_model_file
// (runtime/exported/opened_file.h) does, and Error(refused) for what hangs or crashes.
torch::jit::Module open_to_look(const Request& request, const Channel& channel);

// The same for commands that also run the model or go on with it: refuses one that reaches files,
// other processes or the network when it runs, unless the request allows it.
torch::jit::Module open_to_use(const Request& request, const Channel& channel);

}  // namespace twinkle::worker
