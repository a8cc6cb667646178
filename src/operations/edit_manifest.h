#pragma once
// `twinkle add` and `twinkle remove`: the manifest's text changes at one place, then the project is
// locked. Both or neither.

#include <string>
#include <vector>

#include "operations/context.h"
#include "operations/lock_project.h"

namespace twinkle::operations {

struct EditReport {
    std::filesystem::path manifest;
    std::vector<std::string> kernels;  // "org/name@1" that were added or removed
    LockReport lock;
};

// `specs`: "org/name" (the newest version is written), "org/name@3", …, or the path of a folder.
EditReport add_kernels(Context& context, const std::vector<std::string>& specs,
                       const std::vector<std::string>& trust);

// `names`: keys of [kernels], or "org/name@3" for one of several versions.
EditReport remove_kernels(Context& context, const std::vector<std::string>& names);

}  // namespace twinkle::operations
