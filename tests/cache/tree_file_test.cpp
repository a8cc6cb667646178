#include "cache/tree_file.h"

#include "catch.h"
#include "filled_cache.h"

using namespace twinkle;
using namespace twinkle::cache;
using test::commit_a;
using test::repo;

TEST_CASE("the list of a commit comes back as it was written", "[cache]") {
    const test::FilledCache filled;
    CHECK_FALSE(read_tree(filled.cache, repo, commit_a));
    std::vector<TreeFile> files = {test::tree_file({"README.md", "text"}),
                                   test::tree_file({"build/x/ü.so", "binary", true})};
    files[1].xet_hash = std::string(64, 'e');
    test::write_tree(filled.cache, repo, commit_a, files);
    const auto found = read_tree(filled.cache, repo, commit_a);
    REQUIRE(found);
    CHECK(*found == files);
    CHECK((*found)[0].etag() == (*found)[0].blob_id);
    CHECK((*found)[0].hash().kind == HashKind::git_sha1);
    CHECK((*found)[1].etag() == *(*found)[1].lfs_sha256);
    CHECK((*found)[1].hash().kind == HashKind::sha256);
}

TEST_CASE("a list that cannot be trusted is as good as none", "[cache]") {
    const test::FilledCache filled;
    const std::string id(40, '1');
    const auto reads = [&](const std::string& text) {
        filled.folder.write("hub/kernels--org--name/trees/" + commit_a + ".json", text);
        return read_tree(filled.cache, repo, commit_a).has_value();
    };
    const auto list = [&](const std::string& path, const std::string& entry) {
        return R"({"format_version": 1, "files": {")" + path + R"(": )" + entry + "}}";
    };
    const std::string good = R"({"size": 1, "blob_id": ")" + id + R"("})";
    CHECK(reads(list("a", good)));
    CHECK_FALSE(reads(""));
    CHECK_FALSE(reads("[]"));
    CHECK_FALSE(reads(R"({"format_version": 2, "files": {}})"));
    CHECK_FALSE(reads(R"({"format_version": 1, "files": []})"));
    CHECK_FALSE(reads(list("../a", good)));
    CHECK_FALSE(reads(list("a", "1")));
    CHECK_FALSE(reads(list("a", R"({"size": -1, "blob_id": ")" + id + R"("})")));
    CHECK_FALSE(reads(list("a", R"({"size": 1, "blob_id": "x"})")));
    CHECK_FALSE(
        reads(list("a", R"({"size": 1, "blob_id": ")" + id + R"(", "lfs_sha256": "../x"})")));
    CHECK_FALSE(reads(std::string(100000, '[')));
}
