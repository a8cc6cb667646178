#pragma once
// Which classes of a model the layers of a mapping would take, found out by what kernelize does, in
// memory, with operators that are declared only: nothing of a kernel runs.

#include "base/json.h"
#include "twinkle/mapping.h"

#include <torch/script.h>

#include <string>

namespace twinkle::runtime {

struct BindingOptions {
    // Layers are tried on classes that only have their name too, where no binding has them. That
    // the names are equal says nothing about values.
    bool by_name = false;
    // So are the functions that the mapping's kernels offer, on functions of their name; where this
    // is not empty, only the one that is called so.
    std::string function{};
    std::string mode = "inference";
};

// One entry per class that is bound, and per function ("kind" is "function", "class" its name):
// {"class", "kind", "layers", "by": "binding"|"name", "kernel",
// "variant", "sites", "fits", "kept": [{"because", "where", "sites", "example"}], "attributes":
// [{"name", "from"}]}; `where` is a place in the kernel's source, `from` is "saved", "manifest",
// "graph" or "lost". The model is not fit for use afterwards.
struct BindingReport {
    base::Json classes = base::Json::array();
    std::vector<std::string> warnings;
};
BindingReport examine_bindings(torch::jit::Module& model, const Mapping& mapping,
                               const BindingOptions& options);

}  // namespace twinkle::runtime
