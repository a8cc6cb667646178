#pragma once
// The modules of a model, for a page that shows its tree.

#include "base/json.h"

#include <torch/script.h>

namespace twinkle::worker {

// [{"path", "class"}], parents first; only the first of very many.
base::Json modules_json(const torch::jit::Module& model);

}  // namespace twinkle::worker
