#pragma once
// Parses argv into a command and its arguments. The only file that sees CLI11.

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

// The output options --json and --color, known before (or without) a successful parse.
Globals output_options(int argc, const char* const* argv);

}  // namespace twinkle::cli
