#pragma once
// Opens the model of a request; runs none of its code that was not asked for.

#include "protocol/request.h"
#include "worker/channel.h"

#include <torch/script.h>

namespace twinkle::worker {

using protocol::Request;

// Serves commands that look at a model, or change it. If reading the model runs its code, that is
// tried in a child process first, with a time limit. Throws as open_model_file
// (runtime/exported/opened_file.h) does, and Error(refused) for code that hangs or crashes.
torch::jit::Module open_to_look(const Request& request, const Channel& channel);

// Serves commands that also run the model or build on it: also refuses a model that reaches files,
// other processes or the network when it runs, unless the request allows that.
torch::jit::Module open_to_use(const Request& request, const Channel& channel);

}  // namespace twinkle::worker
