#include "runtime/graph/stack_frames.h"

#include "base/number.h"

#include <algorithm>
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
    const auto number = base::parse_number<int>(line.substr(open + 1, mark - open - 1));
    return number ? std::optional(StackFrame{std::string(line.substr(0, open)), *number,
                                             std::string(line.substr(mark + 3))})
                  : std::nullopt;
}

const std::vector<StackFrame> no_stack;

}  // namespace

std::size_t StackReader::Hash::operator()(const std::vector<LineId>& lines) const {
    std::size_t hash = lines.size();
    for (const LineId line : lines) {
        hash = hash * 0x9e3779b97f4a7c15 + line;
    }
    return hash;
}

const std::vector<StackFrame>& StackReader::stack_of(const torch::jit::Node* node) {
    torch::jit::SourceRange range = node->sourceRange();
    if (auto original = range.findSourceRangeThatGenerated()) {
        range = *std::move(original);
    }
    if (!range.source()) {
        return no_stack;
    }
    const auto [entry, first] = of_sources_.try_emplace(range.source());
    if (first) {
        entry->second = &read(*range.source());
    }
    return *entry->second;
}

// None for the source text of a script. What called the module would take most of the time.
const std::vector<StackFrame>& StackReader::read(const torch::jit::Source& source) {
    reading_.clear();
    const auto& text = source.text_str();
    // In a saved model every line is a piece that all stacks share.
    std::size_t at = 0;
    for (std::size_t i = 0; at < text.size(); ++i) {
        const std::string_view piece = text.piece(i);
        at += piece.size();
        if (!piece.ends_with('\n') && at < text.size()) {
            reading_.clear();
            read_piece(text.str(), false);
            break;
        }
        if (!read_piece(piece, true)) {
            break;
        }
    }
    auto& stack = stacks_[reading_];
    if (stack == nullptr) {
        stack = std::make_unique<std::vector<StackFrame>>();
        for (const LineId one : reading_) {
            stack->push_back(lines_[one].frame);
        }
    }
    return *stack;
}

// Whether more belongs to the stack. `stays`: the piece is where it is for as long as this reads.
bool StackReader::read_piece(std::string_view piece, bool stays) {
    const auto known = of_pieces_.find(piece.data());
    const bool is_known = stays && known != of_pieces_.end() && known->second.first == piece.size();
    for (std::string_view rest = piece; !rest.empty();) {
        const std::string_view text = rest.substr(0, rest.find('\n'));
        const bool whole = text.size() + 1 >= piece.size();
        rest.remove_prefix(std::min(rest.size(), text.size() + 1));
        if (text.empty()) {
            continue;
        }
        const LineId id = is_known ? known->second.second : line(text);
        if (whole && stays && !is_known) {
            of_pieces_[piece.data()] = {piece.size(), id};
        }
        if (!lines_[id].is_frame || reading_.size() >= deepest) {
            reading_.clear();
            return false;
        }
        reading_.push_back(id);
        if (lines_[id].is_call_of_module) {
            return false;
        }
    }
    return true;
}

StackReader::LineId StackReader::line(std::string_view text) {
    const auto known = of_texts_.find(text);
    if (known != of_texts_.end()) {
        return known->second;
    }
    Line made;
    if (auto frame = parse_frame(text)) {
        made.frame = *std::move(frame);
        made.is_frame = true;
        made.is_call_of_module = made.frame.function == module_call;
    }
    lines_.push_back(std::move(made));
    const auto id = static_cast<LineId>(lines_.size() - 1);
    of_texts_.emplace(text, id);
    return id;
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
