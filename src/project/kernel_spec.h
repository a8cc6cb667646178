#pragma once
// A kernel as it is named on the command line: "org/name", "org/name@3", "org/name@>=0.1,<0.3",
// "org/name@REV"; or a path.

#include <string>
#include <string_view>

#include "project/pin.h"

namespace twinkle::project {

struct KernelSpec {
    std::string repo_id;
    Pin pin;  // empty: the newest version, "main" where there is none

    std::string text() const;  // "org/name@3"
};

// Whether it means a path: it starts with "." or "/", or is there.
bool is_path(std::string_view text);

// Throws Error(malformed), with an example.
KernelSpec parse_kernel_spec(std::string_view text);

// What stands behind the "@": a version, a specifier of releases, or a revision.
Pin parse_pin(std::string_view text);

}  // namespace twinkle::project
