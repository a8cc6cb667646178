#pragma once
// kernelize --graphs --tune: in which sizes a model is to be replayed as CUDA graphs, measured on
// the GPU that it is for, before it is saved.

#include "base/json.h"
#include "runtime/verify/verification_context.h"

#include <torch/script.h>

#include <string>
#include <vector>

namespace twinkle::worker {

struct DecidedGraphs {
    std::string text;  // for the mark (replay/replay_decisions.h)
    base::Json shapes =
        base::Json::array();  // [{"inputs", "replayed", "because", "plain_us", "replay_us"}]
    std::string problem;      // why nothing was decided; servers will
};

// Decides on the context's inputs, and in the sizes of it that are tuned, in a child process. The
// model is not marked.
DecidedGraphs decide_graphs(const torch::jit::Module& model,
                            const runtime::VerificationContext& context);

}  // namespace twinkle::worker
