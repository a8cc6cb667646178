#pragma once
// The digest in metadata.json over every file of a build.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/metadata.h"

namespace twinkle::kernel {

// Files that a digest does not cover: metadata.json and its signature, and bytecode.
bool is_outside_digest(std::string_view path);
// *.pyc and __pycache__: written by whoever imports the package, no part of a build.
bool is_bytecode(std::string_view path);

// What differs, one line each: missing or differing files by path, then unknown files. `found` maps
// the path of every file to its hash by the digest's algorithm, raw.
std::vector<std::string> digest_violations(const Digest& digest,
                                           const std::map<std::string, std::string>& found);

}  // namespace twinkle::kernel
