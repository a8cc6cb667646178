#pragma once
// Fits a layer to a site. Tracing changes the inputs and outputs of a module, so what a site passes
// and wants back is read from its own graph: the call of the compiled layer stands for the one
// result that it computes, and what else the original returned stays computed by the original
// nodes.

#include "runtime/graph/passed_parameters.h"
#include "runtime/source/layer_compiler.h"

#include <torch/csrc/jit/ir/ir.h>

#include <tl/expected.hpp>

#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

// A parameter of the layer, and the inputs of the graph that are its value: several where the trace
// has flattened a tuple.
struct AdaptedArgument {
    std::string name;
    std::vector<std::size_t> inputs;
    c10::TypePtr type;
};

struct Adapter {
    std::vector<AdaptedArgument> arguments;  // in the order of the layer's parameters
    std::vector<AdaptedArgument> passed;     // own parameters that the layer reads as attributes
    // Which element of a returned tuple the layer computes; none: all of what the site returns, and
    // `unclear` says why no element could be told.
    std::optional<std::size_t> element;
    std::string unclear;

    LayerSignature signature() const;
};

// How `graph` (a forward, self first) would be served by a layer with these parameters, or why it
// cannot be.
tl::expected<Adapter, std::string> fit(torch::jit::Graph& graph,
                                       const std::vector<LayerParameter>& parameters,
                                       const PassedInputs& passed);

// Where the result of the compiled layer goes, or why its type fits nowhere. Changes nothing.
struct Placement {
    torch::jit::Node* user = nullptr;
    std::size_t input = 0;
    // Of a tuple that the layer returns, the one element that is not None: the trace has dropped
    // what was None.
    std::optional<std::size_t> element{};
};
tl::expected<Placement, std::string> place(torch::jit::Graph& graph, const Adapter& adapter,
                                           torch::jit::Function& method);

// Puts the call of `method` into the graph and removes what nothing needs any more.
void apply(torch::jit::Graph& graph, const Adapter& adapter, const Placement& placement,
           torch::jit::Function& method);

}  // namespace twinkle::runtime
