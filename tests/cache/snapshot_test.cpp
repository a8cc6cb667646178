#include "cache/snapshot.h"

#include "catch.h"
#include "filled_cache.h"

using namespace twinkle;
using namespace twinkle::cache;
using namespace twinkle::test;
namespace fs = std::filesystem;

TEST_CASE("branches, tags and commits are found without the network", "[cache]") {
    const FilledCache filled;
    CHECK_FALSE(find_snapshot(filled.cache, repo, "v1"));
    filled.add(repo, commit_a, "v1", {{"build/x/a.so", "a"}});
    write_ref(filled.cache, repo, "refs/pr/7", commit_b);

    CHECK(find_commit(filled.cache, repo, "v1") == commit_a);
    CHECK(find_commit(filled.cache, repo, "refs/pr/7") == commit_b);
    CHECK(find_commit(filled.cache, repo, commit_b) == commit_b);
    CHECK_FALSE(find_commit(filled.cache, repo, "v2"));
    CHECK_FALSE(find_commit(filled.cache, repo, "../refs/v1"));
    const auto snapshot = find_snapshot(filled.cache, repo, "v1");
    REQUIRE(snapshot);
    CHECK(snapshot->commit == commit_a);
    CHECK(snapshot->folder == filled.cache.snapshot(repo, commit_a));
    CHECK_FALSE(find_snapshot(filled.cache, repo, "refs/pr/7"));

    const auto refs = list_refs(filled.cache, repo);
    REQUIRE(refs.size() == 2);
    CHECK(refs[0].name == "refs/pr/7");
    CHECK(refs[1].name == "v1");
}

TEST_CASE("a ref that is no commit is no ref", "[cache]") {
    const FilledCache filled;
    filled.folder.write("hub/kernels--org--name/refs/v1", "main\n");
    CHECK_FALSE(find_commit(filled.cache, repo, "v1"));
    filled.folder.write("hub/kernels--org--name/refs/v1", std::string(10000, 'a'));
    CHECK_FALSE(find_commit(filled.cache, repo, "v1"));
    filled.folder.write("hub/kernels--org--name/refs/v1", commit_a + "\n");
    CHECK(find_commit(filled.cache, repo, "v1") == commit_a);
}

TEST_CASE("a file counts when all its links lead to it", "[cache]") {
    const FilledCache filled;
    filled.add(repo, commit_a, "v1", {{"build/x/a.so", "abc", true}});
    CHECK(has_file(filled.cache, repo, commit_a, "build/x/a.so"));
    CHECK(has_file(filled.cache, repo, commit_a, "build/x/a.so", 3));
    CHECK_FALSE(has_file(filled.cache, repo, commit_a, "build/x/a.so", 4));
    CHECK_FALSE(has_file(filled.cache, repo, commit_a, "build/x"));
    CHECK_FALSE(has_file(filled.cache, repo, commit_b, "build/x/a.so"));

    // The newer layout: the blob is a link as well.
    const auto blob = filled.cache.blob(repo, tree_file({"", "abc", true}).etag());
    const std::string name(64, 'c');
    const auto shared = filled.cache.root() / "blobs" / "cc" / name;
    fs::create_directories(shared.parent_path());
    fs::rename(blob, shared);
    fs::create_symlink("../../blobs/cc/" + name, blob);
    CHECK(has_file(filled.cache, repo, commit_a, "build/x/a.so", 3));
    fs::remove(shared);
    CHECK_FALSE(has_file(filled.cache, repo, commit_a, "build/x/a.so"));
}
