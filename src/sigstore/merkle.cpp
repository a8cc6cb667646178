#include "sigstore/merkle.h"

#include "sigstore/hash.h"

namespace twinkle::sigstore {
namespace {

std::string hash_node(std::string_view left, std::string_view right) {
    base::EvpDigest digest(HashAlgorithm::sha256);
    digest.update(std::string_view("\x01", 1));
    digest.update(left);
    digest.update(right);
    return digest.finish();
}

std::string hash_leaf(std::string_view leaf) {
    base::EvpDigest digest(HashAlgorithm::sha256);
    digest.update(std::string_view("\0", 1));
    digest.update(leaf);
    return digest.finish();
}

}  // namespace

// The algorithm of RFC 9162, 2.1.3.2.
std::optional<std::string> root_of_path(std::string_view leaf, std::uint64_t index,
                                        std::uint64_t size, const std::vector<std::string>& path) {
    if (index >= size) {
        return std::nullopt;
    }
    std::uint64_t node = index;
    std::uint64_t last = size - 1;
    std::string root = hash_leaf(leaf);
    for (const auto& sibling : path) {
        if (last == 0 || sibling.size() != hash_size(HashAlgorithm::sha256)) {
            return std::nullopt;
        }
        if ((node & 1) != 0 || node == last) {
            root = hash_node(sibling, root);
            while ((node & 1) == 0 && node != 0) {
                node >>= 1;
                last >>= 1;
            }
        } else {
            root = hash_node(root, sibling);
        }
        node >>= 1;
        last >>= 1;
    }
    return last == 0 ? std::optional(root) : std::nullopt;
}

}  // namespace twinkle::sigstore
