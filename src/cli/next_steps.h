#pragma once
// What to try after a kernelize: commands that can be pasted, for this model and this machine.

#include <string>
#include <vector>

#include "base/json.h"
#include "cli/command.h"
#include "cli/console.h"
#include "protocol/request.h"

namespace twinkle::cli {

struct NextStep {
    std::string why;      // "how fast every site is"
    std::string command;  // "twinkle bench model.pt --inputs inputs.pt"
};

// The most useful first, and not many. `declared`: the options of the call.
std::vector<NextStep> next_steps(const std::vector<Option>& declared, const Arguments& arguments,
                                 const Globals& globals, const protocol::Request& request,
                                 const base::Json& report);

// Writes to stderr, where a person may read it.
void say_next_steps(const std::vector<NextStep>& steps, Console& console);

}  // namespace twinkle::cli
