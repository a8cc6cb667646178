#include "cli/shell_command.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace twinkle::cli {
namespace {

constexpr std::string_view plain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=@%+";

// $'…' of bash and zsh: what a terminal must not see is spelled out.
std::string spelled_out(std::string_view text) {
    std::string result = "$'";
    for (const char byte : text) {
        const auto code = static_cast<unsigned char>(byte);
        if (code < 0x20 || code >= 0x7f) {
            result += fmt::format("\\x{:02x}", code);
        } else {
            result +=
                byte == '\'' || byte == '\\' ? std::string("\\") + byte : std::string(1, byte);
        }
    }
    return result + "'";
}

}  // namespace

std::string shell_word(std::string_view text) {
    if (!text.empty() && text.find_first_not_of(plain) == std::string_view::npos) {
        return std::string(text);
    }
    if (base::printable(text) != text) {
        return spelled_out(text);
    }
    std::string result = "'";
    for (const char byte : text) {
        result += byte == '\'' ? "'\\''" : std::string(1, byte);
    }
    return result + "'";
}

ShellCommand::ShellCommand(const std::string& command, const Globals& globals)
    : text_("twinkle " + command) {
    if (globals.project) {
        option("--project", globals.project->string());
    }
}

ShellCommand& ShellCommand::options(const std::vector<Option>& declared, const Arguments& given,
                                    const std::set<std::string>& but) {
    for (const Option& option : declared) {
        const auto key = option.key();
        if (but.contains(key) || !given.flag(key)) {
            continue;
        }
        const auto name = option.spellings().front();
        const auto& values = given.list(key);
        for (const auto& value : option.repeatable ? values : std::vector{values.back()}) {
            const bool flag =
                option.value.empty() || (option.value_optional && value == Arguments::given);
            flag                    ? word(name)
            : option.value_optional ? word(name + "=" + value)
                                    : this->option(name, value);
        }
    }
    return *this;
}

ShellCommand& ShellCommand::word(std::string_view text) {
    text_ += " " + shell_word(text);
    return *this;
}

ShellCommand& ShellCommand::option(const std::string& name, std::string_view value) {
    // A value that begins with a dash would be read as an option.
    return value.starts_with('-') ? word(name + "=" + std::string(value)) : word(name).word(value);
}

}  // namespace twinkle::cli
