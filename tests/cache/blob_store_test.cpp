#include "cache/blob_store.h"

#include <sys/stat.h>

#include "../base/throws.h"
#include "cache/snapshot.h"
#include "catch.h"
#include "filled_cache.h"

using namespace twinkle;
using namespace twinkle::cache;
using namespace twinkle::test;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) {
        names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace

TEST_CASE("a snapshot holds relative links into the blobs", "[cache]") {
    const FilledCache filled;
    filled.add(repo, commit_a, "v1", {{"README.md", "r"}, {"build/x/deep/a.so", "abc", true}});
    const auto link = [&](const std::string& path) {
        return fs::read_symlink(filled.cache.file(repo, commit_a, path)).string();
    };
    CHECK(link("README.md") == "../../blobs/" + tree_file({"", "r"}).etag());
    CHECK(link("build/x/deep/a.so") ==
          "../../../../../blobs/" + tree_file({"", "abc", true}).etag());
    CHECK(filled.folder.read("hub/CACHEDIR.TAG")
              .starts_with("Signature: 8a477f597d28d172789f06886806bc55\n"));
    CHECK(filled.folder.read("hub/kernels--org--name/refs/v1") == commit_a);
}

TEST_CASE("a file in the way of a link is replaced", "[cache]") {
    const FilledCache filled;
    filled.add(repo, commit_a, "v1", {{"a", "abc"}});
    const auto path = filled.cache.file(repo, commit_a, "a");
    fs::remove(path);
    filled.folder.write(path.lexically_relative(filled.folder.path()), "other");
    CHECK(link_into_snapshot(filled.cache, repo, commit_a, tree_file({"a", "abc"})));
    CHECK(fs::is_symlink(path));
    fs::remove(path);
    fs::create_symlink("nowhere", path);
    CHECK(link_into_snapshot(filled.cache, repo, commit_a, tree_file({"a", "abc"})));
    CHECK(has_file(filled.cache, repo, commit_a, "a", 3));
    CHECK(names_in(filled.cache.blobs(repo)).size() == 1);
}

TEST_CASE("without links a snapshot holds the bytes, and the blob stays", "[cache]") {
    const FilledCache filled({.symlinks = false});
    filled.add(repo, commit_a, "v1", {{"a", "abc"}, {"build/x/b", "abc"}});
    for (const char* path : {"a", "build/x/b"}) {
        const auto file = filled.cache.file(repo, commit_a, path);
        CHECK(fs::is_regular_file(fs::symlink_status(file)));
        struct stat info{};
        REQUIRE(::stat(file.c_str(), &info) == 0);
        CHECK(info.st_nlink == 3);  // no byte twice
    }
    // A second time changes nothing.
    CHECK(link_into_snapshot(filled.cache, repo, commit_a, tree_file({"a", "abc"})));
    CHECK(names_in(filled.cache.blobs(repo)).size() == 1);
}

TEST_CASE("nothing is linked to a blob that is not whole", "[cache]") {
    const FilledCache filled;
    prepare_repository(filled.cache, repo);
    TreeFile file = tree_file({"a", "abc"});
    CHECK_FALSE(link_into_snapshot(filled.cache, repo, commit_a, file));
    filled.folder.write("hub/kernels--org--name/blobs/" + file.etag(), "ab");
    CHECK_FALSE(link_into_snapshot(filled.cache, repo, commit_a, file));
    CHECK_FALSE(fs::exists(fs::symlink_status(filled.cache.file(repo, commit_a, "a"))));
    file.path = "../../../x";
    CHECK_THROWS_AS(link_into_snapshot(filled.cache, repo, commit_a, file), Error);
}

TEST_CASE("a cache that cannot be written to is named", "[cache]") {
    const Cache cache("/proc/self/hub");
    const auto error = error_of([&] { prepare_repository(cache, repo); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::failed);
    CHECK(error->details().where.find("/proc/self/hub") != std::string::npos);
    CHECK(error->details().hint.find("KERNELS_CACHE") != std::string::npos);
}

TEST_CASE("a ref is written once", "[cache]") {
    const FilledCache filled;
    write_ref(filled.cache, repo, "v1", commit_a);
    const auto file = filled.cache.ref_file(repo, "v1");
    struct stat before{}, after{};
    REQUIRE(::stat(file.c_str(), &before) == 0);
    write_ref(filled.cache, repo, "v1", commit_a);
    REQUIRE(::stat(file.c_str(), &after) == 0);
    CHECK(before.st_ino == after.st_ino);
    write_ref(filled.cache, repo, "v1", commit_b);
    CHECK(filled.folder.read("hub/kernels--org--name/refs/v1") == commit_b);
    CHECK_THROWS_AS(write_ref(filled.cache, repo, "v1", "main"), Error);
    CHECK_THROWS_AS(write_ref(filled.cache, repo, "../v1", commit_a), Error);
}
