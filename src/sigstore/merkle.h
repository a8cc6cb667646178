#pragma once
// Merkle trees of transparency logs (RFC 6962, RFC 9162): SHA-256, different prefixes for leaves
// and nodes.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::sigstore {

// The root of the tree of `size` leaves in which `leaf` is number `index`, from the sibling hashes
// along its path, lowest first. None if their number does not fit such a path.
std::optional<std::string> root_of_path(std::string_view leaf, std::uint64_t index,
                                        std::uint64_t size, const std::vector<std::string>& path);

}  // namespace twinkle::sigstore
