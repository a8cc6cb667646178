// Audit paths against the definition of the tree, for every leaf of every small tree.
#include "sigstore/merkle.h"

#include "catch.h"
#include "log_tree.h"

using namespace twinkle;
using sigstore::root_of_path;

TEST_CASE("the path of every leaf leads to the root, and to no other") {
    std::vector<std::string> leaves;
    for (std::size_t size = 1; size <= 33; ++size) {
        leaves.push_back("leaf " + std::to_string(size));
        const auto root = test::tree_hash(leaves, 0, size);
        for (std::size_t index = 0; index < size; ++index) {
            const auto path = test::audit_path(leaves, index, 0, size);
            INFO(index << " of " << size);
            CHECK(root_of_path(leaves[index], index, size, path) == root);
            CHECK(root_of_path("another", index, size, path) != root);
            if (size > 1) {
                CHECK(root_of_path(leaves[index], (index + 1) % size, size, path) != root);
                auto cut = path;
                cut.pop_back();
                CHECK_FALSE(root_of_path(leaves[index], index, size, cut) == root);
                cut = path;
                cut.push_back(path.front());
                CHECK_FALSE(root_of_path(leaves[index], index, size, cut));
            }
        }
    }
}

TEST_CASE("impossible paths are none") {
    CHECK_FALSE(root_of_path("x", 0, 0, {}));
    CHECK_FALSE(root_of_path("x", 3, 3, {}));
    CHECK_FALSE(root_of_path("x", 0, 2, {"too short to be a hash"}));
    CHECK_FALSE(root_of_path("x", UINT64_MAX - 1, UINT64_MAX, {}));
}
