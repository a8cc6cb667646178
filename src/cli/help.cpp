#include "cli/help.h"

#include <algorithm>

#include "base/terminal.h"
#include "base/text.h"

namespace twinkle::cli {
namespace {

using base::Style;

struct Entry {
    std::string left;
    std::string right;
};

std::size_t text_columns(std::size_t columns) {
    return columns == 0 ? 80 : std::clamp<std::size_t>(columns, 40, 100);
}

std::string heading(const char* text, bool color) {
    return "\n" + base::styled(text, Style::bold, color) + "\n";
}

// Two columns; the right one wraps within itself, or starts on its own line.
std::string list(const std::vector<Entry>& entries, std::size_t columns, bool color) {
    std::size_t widest = 0;
    for (const auto& entry : entries) {
        widest = std::max(widest, base::display_width(entry.left));
    }
    const std::size_t indent = std::min<std::size_t>(widest, 24) + 4;
    std::string text;
    for (const auto& [left, right] : entries) {
        const auto used = base::display_width(left) + 2;
        const auto body = base::wrap(right, columns, indent);
        text += "  " + base::styled(left, Style::cyan, color);
        text += used + 2 <= indent ? std::string(indent - used, ' ') + body.substr(indent)
                                   : "\n" + body;
        text += "\n";
    }
    return text;
}

std::string option_title(const Option& option) {
    auto spellings = option.spellings();
    std::string text = base::join(spellings, ", ");
    if (spellings.size() == 1 && text.starts_with("--")) {
        text = "    " + text;
    }
    return text + option.value_usage();
}

std::string option_list(const std::vector<Option>& options, std::size_t columns, bool color) {
    std::vector<Entry> entries;
    for (const auto& option : options) {
        entries.push_back({option_title(option), option.help});
    }
    return list(entries, columns, color);
}

}  // namespace

std::string general_help(const std::vector<Command>& commands, std::size_t columns, bool color) {
    const auto width = text_columns(columns);
    std::string text = base::styled("twinkle", Style::bold, color) +
                       ": optimized kernels for saved TorchScript models, without Python\n\n"
                       "Usage: twinkle [OPTION]… COMMAND …\n" +
                       heading("Commands:", color);
    std::vector<Entry> entries;
    for (const auto& command : commands) {
        if (!command.hidden) {
            entries.push_back({command.name, command.summary});
        }
    }
    text += list(entries, width, color);
    text += heading("Options, before or after the command:", color);
    text += option_list(global_options(), width, color);
    text += heading("Example:", color);
    text += "  twinkle kernelize model.pt --inputs inputs.pt -o fast.pt\n";
    text += "\ntwinkle COMMAND --help shows the options of a command and more examples.\n";
    return text;
}

std::string command_help(const Command& command, std::size_t columns, bool color) {
    const auto width = text_columns(columns);
    std::string text = base::styled("twinkle " + command.name, Style::bold, color) + ": " +
                       command.summary + "\n\nUsage: " + command.synopsis() + "\n";
    for (const auto& paragraph : base::split(command.description, '\n')) {
        text += paragraph.empty() ? "" : "\n" + base::wrap(paragraph, width) + "\n";
    }
    if (!command.arguments.empty()) {
        std::vector<Entry> entries;
        for (const auto& argument : command.arguments) {
            entries.push_back({argument.name, argument.help});
        }
        text += heading("Arguments:", color) + list(entries, width, color);
    }
    if (!command.options.empty()) {
        text += heading("Options:", color) + option_list(command.options, width, color);
    }
    text +=
        heading("Options of every command:", color) + option_list(global_options(), width, color);
    text += heading(command.examples.size() == 1 ? "Example:" : "Examples:", color);
    for (const auto& example : command.examples) {
        text += base::wrap("# " + example.says, width, 2) + "\n  " + example.line + "\n";
    }
    return text;
}

}  // namespace twinkle::cli
