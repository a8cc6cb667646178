#pragma once
// From what the user asks for to what is used on one machine: manifest, target and kernels become
// the mapping that kernelize reads. Nothing is fetched, no kernel is loaded here.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "project/ask_operators.h"
#include "project/lock_files.h"
#include "target/machine.h"
#include "twinkle/mapping.h"

namespace twinkle::project {

struct ResolveOptions {
    std::optional<std::filesystem::path> project;      // --project
    std::filesystem::path start = ".";                 // where the search for a project begins
    std::optional<std::string> target;                 // --target
    std::optional<std::filesystem::path> kernels_dir;  // of the bundled pack; none: as installed
    std::optional<std::filesystem::path> presets_dir;  // none: as installed
    std::optional<std::filesystem::path> lockfile;     // none: the project's own
    LockDemand lock = LockDemand::none;
    bool strict = false;  // what the target cannot have is an error instead of a decision
    const target::Machine* machine = nullptr;  // none: this one
    AskOperators ask_operators;  // none: a mapping has those alone that libraries show
};

struct Resolution {
    Mapping mapping;
    std::vector<std::string> warnings;  // for a person: dirty builds, unpinned kernels, …
    std::vector<std::string> notes;     // with -v: which manifest, which runtime
    std::optional<std::filesystem::path> manifest;  // none: the bundled pack with its preset
};

// Throws Error: malformed manifest or lock, kernel or layer not found, no variant for the target, a
// digest or locked hash that differs, a lock that does not fit the manifest, …
Resolution resolve(const ResolveOptions& options);

}  // namespace twinkle::project
