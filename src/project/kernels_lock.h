#pragma once
// kernels.lock: the lock of the Python tool `kernels`, so that a project can be used by both.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/tree_file.h"
#include "project/lock.h"
#include "project/requests.h"

namespace twinkle::project {

// Byte for byte as kernels 0.17.2 writes it: the kernels of `roots` with every dependency of every
// variant. None: all Hub kernels of the lock.
std::string kernels_lock_json(const Lock& lock,
                              const std::optional<std::vector<HubRequest>>& roots = std::nullopt);

// Both formats of Python's `kernels`: the one it writes, and the one from before 0.16. Strict, as
// it is. Throws Error(malformed) with file, line and column.
Lock parse_kernels_lock(std::string_view json, std::string_view origin);

// The older format's hash of a variant: "sha256-" and the SHA-256 over path and raw hash of every
// file below build/<variant>/ but bytecode, by path. Paths are those below that folder.
std::string concat_hash(std::string_view variant, std::span<const cache::TreeFile> tree);

}  // namespace twinkle::project
