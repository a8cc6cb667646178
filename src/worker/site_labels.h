#pragma once
// The labels of a kernelized model (runtime/model/labels.h): written from its report and plan, read
// for inspect.

#include "base/json.h"
#include "runtime/plan/plan.h"
#include "twinkle/report.h"

#include <torch/script.h>

namespace twinkle::worker {

// One for each replaced site, beside those that the model has of an earlier kernelize.
void label_sites(torch::jit::Module& root, const Report& report, runtime::Plan& plan);

// [{"site", "kind", "of", "because", "input", "serves": [{"from", "up_to", "elements", "kernel",
// "build", "cfg"}]}], as far as the text can be read. By size: `up_to` rows, which are so many
// elements of the input with that number.
base::Json read_labels(const torch::jit::Module& root);

}  // namespace twinkle::worker
