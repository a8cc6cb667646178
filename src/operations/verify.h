#pragma once
// `twinkle verify`: are the builds on this machine what was locked, and what their own metadata
// says? Asks nobody, loads nothing.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "operations/context.h"
#include "project/kernel_spec.h"
#include "project/signatures.h"

namespace twinkle::operations {

struct VerifyOptions {
    std::vector<project::KernelSpec> specs;    // in the cache
    std::vector<std::filesystem::path> paths;  // folders with a build, or with several
    // … neither: every kernel of the project's lock
    project::SignatureOptions signature;
    bool trust_unchanged = false;  // do not read again what has not changed since it was verified
};

struct VerifiedBuild {
    std::string kernel;  // "org/name@1", or a path
    std::string repo_id;
    std::string variant;
    std::filesystem::path folder;
    std::uint64_t files = 0;
    std::uint64_t bytes = 0;
    bool locked = false;                                // held against hashes of the lock
    bool has_digest = false;                            // held against the digest of its metadata
    bool dirty = false;                                 // built from a tree with changes in it
    std::optional<kernel::SignatureVerdict> signature;  // none: nobody wanted to know
    std::vector<std::string> problems;                  // empty: it is right
};

// Throws Error(not_found) for what is not on this machine. What is wrong is in the answer.
std::vector<VerifiedBuild> verify(Context& context, const VerifyOptions& options);

}  // namespace twinkle::operations
