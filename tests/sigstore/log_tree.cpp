#include "log_tree.h"

#include "sigstore/hash.h"

namespace twinkle::test {
namespace {

std::string sha256(const std::string& bytes) {
    return sigstore::hash(sigstore::HashAlgorithm::sha256, bytes);
}

}  // namespace

std::string tree_hash(const std::vector<std::string>& entries, std::size_t from, std::size_t to) {
    if (to - from == 1) {
        return sha256(std::string(1, '\0') + entries[from]);
    }
    std::size_t split = 1;
    while (split * 2 < to - from) {
        split *= 2;
    }
    return sha256("\x01" + tree_hash(entries, from, from + split) +
                  tree_hash(entries, from + split, to));
}

std::vector<std::string> audit_path(const std::vector<std::string>& entries, std::size_t index,
                                    std::size_t from, std::size_t to) {
    if (to - from == 1) {
        return {};
    }
    std::size_t split = 1;
    while (split * 2 < to - from) {
        split *= 2;
    }
    const bool left = index < from + split;
    auto path = left ? audit_path(entries, index, from, from + split)
                     : audit_path(entries, index, from + split, to);
    path.push_back(left ? tree_hash(entries, from + split, to)
                        : tree_hash(entries, from, from + split));
    return path;
}

}  // namespace twinkle::test
