#pragma once
// Loads a library of operators in a child process, where it can do no harm, and reports the
// operators that it registers and the side effects of its initializers.

#include "base/json.h"

#include <filesystem>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct LibraryLoad {
    std::vector<std::filesystem::path> libraries;
    std::string op_namespace;                   // from the build's metadata; empty: unknown
    std::vector<std::string> static_operators;  // found in the library's strings: "name(…) -> …"
};

// {"ok", "why", "operators": [{"name", "schema", "declaration", "keys", "mutates", "aliases",
// "found_statically"}], "problems": […], "output"}; "declaration" is the schema without namespace,
// as it can be parsed again. Call it before this process has used a thread pool.
base::Json examine_load(const LibraryLoad& load);

}  // namespace twinkle::runtime
