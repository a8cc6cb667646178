#include "runtime/inspect/stack_frames.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace twinkle::runtime {

namespace {

constexpr std::size_t deepest = 512;
constexpr std::string_view module_call = "_slow_forward";

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

// None for the source text of a script. What called the module would take most of the time.
std::vector<StackFrame> parse_stack(const torch::jit::Source& source) {
    std::vector<StackFrame> frames;
    const std::string text = source.text_str().str();
    std::string_view rest = text;
    while (!rest.empty() && (frames.empty() || frames.back().function != module_call)) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
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
std::span<const StackFrame> functions_around(const std::vector<StackFrame>& stack) {
    const auto module = std::find_if(stack.begin(), stack.end(), [](const StackFrame& frame) {
        return frame.function == module_call;
    });
    const std::span<const StackFrame> frames(stack.begin(), module);
    return frames.size() > 1 ? frames : std::span<const StackFrame>();
}

}  // namespace twinkle::runtime
