#pragma once
// Merkle trees of transparency logs (RFC 6962, RFC 9162): SHA-256, leaves and nodes told apart.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::sigstore {

// The root of the tree of `size` leaves in which `leaf` is number `index`, from the hashes beside
// its path, lowest first. None if the number of hashes is not that of such a path.
std::optional<std::string> root_of_path(std::string_view leaf, std::uint64_t index,
                                        std::uint64_t size, const std::vector<std::string>& path);

}  // namespace twinkle::sigstore
