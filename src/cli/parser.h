#pragma once
// From argv to a command and its arguments. The only file that sees CLI11.

#include <vector>

#include "cli/command.h"
#include "cli/console.h"

namespace twinkle::cli {

struct Parsed {
    enum class Action { run, help, version };

    Action action = Action::run;
    const Command* command = nullptr;  // null: none was named
    Globals globals;
    Arguments arguments;
};

// Throws Error(malformed) for wrong usage, with the nearest command or option.
Parsed parse(int argc, const char* const* argv, const std::vector<Command>& commands);

// What can be known about the output before (or without) a successful parse: --json and --color.
Globals output_options(int argc, const char* const* argv);

}  // namespace twinkle::cli
