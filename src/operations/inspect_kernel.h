#pragma once
// What is in a kernel: a folder, one of its libraries, or a kernel of the Hub.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "binary/library.h"
#include "kernel/inspection.h"
#include "operations/context.h"
#include "project/kernel_spec.h"
#include "target/target.h"
#include "tuning/declaration.h"

namespace twinkle::operations {

struct KernelView {
    std::string repo_id;  // of the Hub; empty: a folder
    std::string commit;
    std::string variant;                // empty: a plain Python package, or a source project's
    std::vector<std::string> variants;  // all that there are
    kernel::Inspection inspection;
    std::optional<tuning::Declaration> tuning{};  // of a build that is here
    // Of the Hub, only metadata and Python were read: what the libraries hold is not known, and
    // with it not whether they need Python.
    bool without_libraries = false;
};

// A build, a repository of builds (the one for the target, or the named variant), a source project
// or a plain package. Throws as kernel::read_build; Error(not_found) for a variant that is not
// there.
KernelView inspect_folder(const std::filesystem::path& path,
                          const std::optional<std::string>& variant, const target::Target& target);

// Reads the cache where the build is there whole; else its metadata and sources are asked for, and
// no library is fetched. Treats a folder of LOCAL_KERNELS as any other folder.
KernelView inspect_spec(Context& context, const project::KernelSpec& spec,
                        const std::optional<std::string>& variant, const target::Target& target);

// A source project, as kernel-builder lays it out: the folder of its package. None: `path` is none.
std::optional<std::filesystem::path> project_package(const std::filesystem::path& path);

}  // namespace twinkle::operations
