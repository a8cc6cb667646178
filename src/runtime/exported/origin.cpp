#include "runtime/exported/origin.h"

#include "base/text.h"
#include "twinkle/error.h"

#include <string_view>

namespace twinkle::runtime::exported {

namespace {

constexpr std::size_t most_written = 4u << 20;

}  // namespace

namespace {

constexpr std::size_t longest_line = 300;

// `  File "/lib/model.py", line 71, in forward`
bool read_frame(std::string_view line, PythonFrame& frame) {
    constexpr std::string_view begin = "File \"";
    constexpr std::string_view middle = "\", line ";
    constexpr std::string_view end = ", in ";
    const auto at = line.find(begin);
    const auto line_at = line.find(middle);
    const auto function_at = line.rfind(end);
    if (at == std::string_view::npos || line.find_first_not_of(' ') != at ||
        line_at == std::string_view::npos || function_at == std::string_view::npos ||
        function_at < line_at + middle.size()) {
        return false;
    }
    frame.file = line.substr(at + begin.size(), line_at - at - begin.size());
    frame.line = line.substr(line_at + middle.size(), function_at - line_at - middle.size());
    frame.function = line.substr(function_at + end.size());
    return frame.line.find_first_not_of("0123456789") == std::string::npos && !frame.line.empty();
}

std::string in_trace_form(const std::string& stack_trace) {
    const auto frames = python_frames(stack_trace);
    std::string text;
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
        text += frame->file + "(" + frame->line + "): " + frame->function + "\n";
        if (frame->function == "forward") {
            break;
        }
    }
    return text;
}

}  // namespace

std::vector<PythonFrame> python_frames(const std::string& stack_trace) {
    std::vector<PythonFrame> frames;
    for (const std::string& line : base::split(stack_trace, '\n')) {
        PythonFrame frame;
        if (read_frame(line, frame)) {
            frames.push_back(std::move(frame));
        } else if (!frames.empty() && frames.back().code.empty()) {
            const auto begin = line.find_first_not_of(' ');
            frames.back().code = begin == std::string::npos ? "" : line.substr(begin);
        }
    }
    return frames;
}

void Origins::count(const Node& node) {
    if (++written_ > most_written) {
        refuse_node(node, "the program unfolds to more nodes than any sane one", "");
    }
}

torch::jit::SourceRange Origins::range_of(const Node& node) {
    auto& source = sources_[node.stack_trace];
    if (source == nullptr) {
        source = std::make_shared<torch::jit::Source>(in_trace_form(node.stack_trace));
    }
    return {source, 0, source->size()};
}

void refuse_node(const Node& node, const std::string& why, const std::string& hint) {
    std::string where = "node " + base::printable(node.name.substr(0, longest_line)) + " (" +
                        base::printable(node.target.substr(0, longest_line)) + ")";
    if (node.modules != nullptr && !node.modules->back().path.empty()) {
        where += " in " + base::printable(node.modules->back().path.substr(0, longest_line));
    }
    if (const auto frames = python_frames(node.stack_trace); !frames.empty()) {
        const PythonFrame& last = frames.back();
        where += ", " + base::printable(last.file.substr(0, longest_line)) + ":" + last.line +
                 ": " + base::printable(last.code.substr(0, longest_line));
    }
    throw Error(ErrorCode::refused, {.what = "the exported model cannot be converted",
                                     .where = where,
                                     .why = why,
                                     .hint = hint});
}

}  // namespace twinkle::runtime::exported
