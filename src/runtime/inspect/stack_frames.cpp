#include "runtime/inspect/stack_frames.h"

#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace twinkle::runtime {

namespace {

constexpr std::size_t deepest = 512;

// "/lib/modeling_llama.py(71): forward"
std::optional<StackFrame> parse_frame(std::string_view line) {
    const auto mark = line.rfind("): ");
    const auto open = mark == std::string_view::npos ? mark : line.rfind('(', mark);
    if (open == std::string_view::npos || open == 0) {
        return std::nullopt;
    }
    StackFrame frame;
    const char* end = line.data() + mark;
    const auto [stop, error] = std::from_chars(line.data() + open + 1, end, frame.line);
    if (error != std::errc() || stop != end) {
        return std::nullopt;
    }
    frame.file = line.substr(0, open);
    frame.function = line.substr(mark + 3);
    return frame;
}

// None for the source text of a script.
std::vector<StackFrame> parse_stack(const torch::jit::Source& source) {
    std::vector<StackFrame> frames;
    for (const std::string& line : base::split(source.text_str().str(), '\n')) {
        if (line.empty()) {
            continue;
        }
        auto frame = parse_frame(line);
        if (!frame || frames.size() >= deepest) {
            return {};
        }
        frames.push_back(*std::move(frame));
    }
    return frames;
}

}  // namespace

const std::vector<StackFrame>& StackReader::stack_of(const torch::jit::Node* node) {
    static const std::vector<StackFrame> none;
    torch::jit::SourceRange range = node->sourceRange();
    if (auto original = range.findSourceRangeThatGenerated()) {
        range = *original;
    }
    if (!range.source()) {
        return none;
    }
    const auto [entry, first] = stacks_.try_emplace(range.source());
    if (first) {
        entry->second = parse_stack(*range.source());
    }
    return entry->second;
}

// The stack goes up to the root of the model, with `_slow_forward` under each module.
std::vector<StackFrame> StackReader::functions_around(const torch::jit::Node* node) {
    const auto& frames = stack_of(node);
    const auto module = std::find_if(frames.begin(), frames.end(), [](const StackFrame& frame) {
        return frame.function == "_slow_forward";
    });
    return module - frames.begin() > 1 ? std::vector<StackFrame>(frames.begin(), module)
                                       : std::vector<StackFrame>{};
}

}  // namespace twinkle::runtime
