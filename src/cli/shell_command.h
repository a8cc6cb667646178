#pragma once
// A command line of twinkle that can be pasted into a shell.

#include <set>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/console.h"

namespace twinkle::cli {

// A word that the shell reads as this text, whatever is in it.
std::string shell_word(std::string_view text);

class ShellCommand {
public:
    explicit ShellCommand(const std::string& command, const Globals& globals);

    // Takes over the options that a call was made with, but those with these keys.
    ShellCommand& options(const std::vector<Option>& declared, const Arguments& given,
                          const std::set<std::string>& but = {});
    ShellCommand& word(std::string_view text);
    ShellCommand& option(const std::string& name, std::string_view value);

    const std::string& text() const { return text_; }

private:
    std::string text_;
};

}  // namespace twinkle::cli
