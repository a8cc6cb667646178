#pragma once
// The result of forward, nested as the author nests it.

#include "runtime/exported/node_writer.h"
#include "runtime/exported/program.h"

#include <torch/script.h>

namespace twinkle::runtime::exported {

// A dictionary whose values are all of one type is a dictionary; another one is a named tuple, as
// TorchScript has no other. Throws InvalidJson (json_reader.h).
torch::jit::Value* write_result(torch::jit::Graph& graph, const Program& program,
                                NodeWriter& writer, torch::jit::CompilationUnit& unit);

}  // namespace twinkle::runtime::exported
