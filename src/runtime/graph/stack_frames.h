#pragma once
// The Python stack that a traced node was made under, as its source range keeps it.

#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace twinkle::runtime {

struct StackFrame {
    std::string file;
    int line = 0;
    std::string function;
};

// The frames of the functions between a node and the forward of the module that it stands in,
// innermost first, and the frame of that forward behind them. Empty for what no function but the
// forward has made.
std::span<const StackFrame> functions_around(const std::vector<StackFrame>& stack);

// Reads every line of every stack once: nodes share stacks, and stacks share lines.
class StackReader {
public:
    // Innermost first, up to the call of the module that it stands in; none for a node that was
    // scripted or has no range. What is returned stays where it is: equal stacks are one.
    const std::vector<StackFrame>& stack_of(const torch::jit::Node* node);

private:
    using LineId = std::uint32_t;
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const {
            return std::hash<std::string_view>()(text);
        }
        std::size_t operator()(const std::vector<LineId>& lines) const;
    };
    struct Line {
        StackFrame frame;
        bool is_frame = false, is_call_of_module = false;
    };

    const std::vector<StackFrame>& read(const torch::jit::Source& source);
    bool read_piece(std::string_view piece, bool stays);
    LineId line(std::string_view text);

    // Keeps the text that pieces are part of.
    std::unordered_map<std::shared_ptr<torch::jit::Source>, const std::vector<StackFrame>*>
        of_sources_;
    std::unordered_map<const char*, std::pair<std::size_t, LineId>> of_pieces_;
    std::unordered_map<std::string, LineId, Hash, std::equal_to<>> of_texts_;
    std::vector<Line> lines_;
    std::vector<LineId> reading_;  // the lines of the stack that is being read
    std::unordered_map<std::vector<LineId>, std::unique_ptr<std::vector<StackFrame>>, Hash> stacks_;
};

}  // namespace twinkle::runtime
