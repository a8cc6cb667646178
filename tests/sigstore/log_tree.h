#pragma once
// The trees of transparency logs by their definition (RFC 6962, 2.1), in contrast to how verifiers
// compute them.

#include <string>
#include <vector>

namespace twinkle::test {

// The hash over entries `from` (inclusive) to `to` (exclusive).
std::string tree_hash(const std::vector<std::string>& entries, std::size_t from, std::size_t to);
std::vector<std::string> audit_path(const std::vector<std::string>& entries, std::size_t index,
                                    std::size_t from, std::size_t to);

}  // namespace twinkle::test
