#pragma once
// Where in its author's Python a node came from.

#include "runtime/exported/program.h"

#include <torch/csrc/jit/frontend/source_range.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace twinkle::runtime::exported {

struct PythonFrame {
    std::string file;
    std::string line;
    std::string function;
    std::string code;
};

// Outermost first, as the archive has them.
std::vector<PythonFrame> python_frames(const std::string& stack_trace);

// The source ranges of nodes, as a trace would have them: "/lib/model.py(71): forward", innermost
// first, up to the forward of the node's module. Nodes of one line share a source.
class Origins {
public:
    torch::jit::SourceRange range_of(const Node& node);
    // Called for every node that is written. Throws Error(refused) once there are too many: graphs
    // of loops are written twice, each inside of another, so that a small file can unfold to any
    // size.
    void count(const Node& node);

private:
    std::size_t written_ = 0;
    std::map<std::string, std::shared_ptr<torch::jit::Source>> sources_;
};

// Throws Error(refused) that names the node, its module and its author's line: `why` it cannot be
// converted, and what helps.
[[noreturn]] void refuse_node(const Node& node, const std::string& why, const std::string& hint);

}  // namespace twinkle::runtime::exported
