#pragma once
// A build on this machine held against the lock.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cache/layout.h"
#include "project/lock.h"
#include "twinkle/mapping.h"

namespace twinkle::project {

// What is not as it was locked, file by file; empty: nothing. Of the files that were found only the
// hashes count that the lock has of them, SHA-256 before git's.
std::vector<std::string> lock_differences(const LockedVariant& locked,
                                          std::span<const LockedFile> found);

// Throws Error(verification) with every file that is not as it was locked. `files` are those of the
// folder, read and hashed already; only what the lock knows by its git hash alone is read again.
// `name` is for messages, `hint` what to do about it.
void check_locked_build(const LockedVariant& locked, const std::filesystem::path& folder,
                        std::span<const MappedFile> files, const std::string& name,
                        const std::string& hint);

// The same for the older lock of Python's `kernels`, which has one hash over the build. Which files
// are in LFS is taken from the cache: its list of the commit, or the names of its blobs. False:
// neither is there, and nothing was checked.
bool check_concat_hash(const LockedKernel& kernel, const LockedVariant& locked,
                       const cache::Cache& cache, const std::filesystem::path& folder,
                       std::span<const MappedFile> files);

}  // namespace twinkle::project
