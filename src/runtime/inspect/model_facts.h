#pragma once
// The contents of a loaded model as JSON: classes with their instances, methods, attributes and one
// graph, functions, and the Python functions that were traced.

#include "base/json.h"

#include <torch/script.h>

#include <optional>
#include <string>

namespace twinkle::runtime {

// {"name", "instances", "example", "origin", "methods", "attributes", "submodules", "graph"} for
// every class, by name without mangling. Graphs and lists are cut to a length fit for a report.
base::Json describe_classes(const torch::jit::Module& model);

// {"name", "signature", "calls"} for every function that a method calls.
base::Json describe_functions(const torch::jit::Module& model);

// {"name", "file", "line", "calls", "classes"} for every Python function that a trace went through,
// besides the forward of its modules, according to the source ranges of the nodes.
base::Json describe_traced_functions(const torch::jit::Module& model);

// The graphs of one class, instance or function, whole: {"of", "example", "methods": [{"name",
// "text"}]}. Throws Error(not_found) with the nearest name.
base::Json whole_graph(const torch::jit::Module& model, const std::string& name);

// The value of an attribute for a report: short, and only if it fits on a line.
std::string value_text(const c10::IValue& value);

}  // namespace twinkle::runtime
