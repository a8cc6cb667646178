#pragma once
// Finds the classes of a model that the layers of a mapping would replace, by running kernelize in
// memory, with operators that are only declared: nothing of a kernel runs.

#include "base/json.h"
#include "twinkle/mapping.h"

#include <torch/script.h>

#include <string>

namespace twinkle::runtime {

struct BindingOptions {
    // Also tries layers on classes that merely have the same name, if no binding names them. An
    // equal name says nothing about values.
    bool by_name = false;
    // The same for the functions that the mapping's kernels offer; if not empty, only for the one
    // of this name.
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
