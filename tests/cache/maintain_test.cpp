#include "cache/maintain.h"

#include <unistd.h>

#include <fstream>

#include "../base/throws.h"
#include "cache/blob_lock.h"
#include "cache/snapshot.h"
#include "catch.h"
#include "filled_cache.h"

using namespace twinkle;
using namespace twinkle::cache;
using namespace twinkle::test;
namespace fs = std::filesystem;

namespace {

const std::atomic<bool> go_on{false};
const std::string other = "org/other";

// Two commits of one repository with two variants that share a file, and another repository.
void fill(const FilledCache& filled) {
    filled.add(repo, commit_a, "v1",
               {{"README.md", "first"},
                {"build/x/a.so", "binary a", true},
                {"build/y/a.so", "binary y", true},
                {"build/x/metadata.json", "{}"}});
    filled.add(repo, commit_b, "v2", {{"README.md", "second"}, {"build/x/a.so", "binary a", true}});
    filled.add(other, commit_a, "v1", {{"build/x/a.so", "binary a", true}});
}

std::string etag_of(const std::string& text, bool lfs = false) {
    return tree_file({"", text, lfs}).etag();
}

std::size_t count_of(const fs::path& folder) {
    std::error_code error;
    fs::recursive_directory_iterator entry(folder, error), end;
    std::size_t count = 0;
    for (; !error && entry != end; entry.increment(error)) {
        count += fs::is_directory(entry->symlink_status()) ? 0 : 1;
    }
    return count;
}

void damage(const fs::path& file) {
    std::ofstream(file, std::ios::in | std::ios::out) << "x";
}

}  // namespace

TEST_CASE("what the cache holds", "[cache]") {
    const FilledCache filled;
    CHECK(list(filled.cache).empty());
    fill(filled);
    filled.folder.write("hub/models--org--name/blobs/" + std::string(40, '1'), "a model");
    filled.folder.write(
        "hub/kernels--org--name/blobs/" + std::string(40, '1') + ".0123abcd.incomplete", "part");
    const auto repositories = list(filled.cache);
    REQUIRE(repositories.size() == 2);
    const CachedRepository& first = repositories[0];
    CHECK(first.repo_id == repo);
    CHECK(first.size == 5 + 8 + 8 + 2 + 6);
    CHECK(first.partial_files == 1);
    CHECK(first.partial_size == 4);
    REQUIRE(first.revisions.size() == 2);
    CHECK(first.revisions[0].commit == commit_a);
    CHECK(first.revisions[0].refs == std::vector<std::string>{"v1"});
    CHECK(first.revisions[0].variants == std::vector<std::string>{"x", "y"});
    CHECK(first.revisions[0].files == 4);
    CHECK(first.revisions[0].size == 23);
    CHECK(repositories[1].repo_id == other);
}

TEST_CASE("every changed byte is found, and removed", "[cache]") {
    for (const bool symlinks : {true, false}) {
        const FilledCache filled({.symlinks = symlinks});
        fill(filled);
        VerifyReport report = verify(filled.cache, {}, 3, go_on);
        CHECK(report.damaged.empty());
        CHECK(report.blobs == 6);
        CHECK(report.bytes == 37);

        damage(filled.cache.blob(repo, etag_of("binary a", true)));
        damage(filled.cache.blob(repo, etag_of("first")));
        CHECK(verify(filled.cache, {other}, 1, go_on).damaged.empty());
        report = verify(filled.cache, {}, 0, go_on);
        REQUIRE(report.damaged.size() == 2);
        for (const DamagedBlob& blob : report.damaged) {
            CHECK(blob.repo_id == repo);
            CHECK(blob.found.size() == blob.etag.size());
            CHECK(blob.found != blob.etag);
            const bool lfs = blob.etag.size() == 64;
            CHECK(blob.paths.size() == (lfs ? 2 : 1));
            CHECK(blob.paths.front() == commit_a + (lfs ? "/build/x/a.so" : "/README.md"));
        }
        remove_damaged(filled.cache, report.damaged);
        CHECK(verify(filled.cache, {}, 0, go_on).damaged.empty());
        CHECK_FALSE(has_file(filled.cache, repo, commit_b, "build/x/a.so"));
        CHECK(has_file(filled.cache, repo, commit_b, "README.md"));
        CHECK(has_file(filled.cache, other, commit_a, "build/x/a.so"));
    }
}

TEST_CASE("files that Python tools have moved into a snapshot are verified too", "[cache]") {
    const FilledCache filled({.symlinks = false});
    filled.add(repo, commit_a, "v1", {{"build/x/a.so", "binary", true}});
    fs::remove(filled.cache.blob(repo, etag_of("binary", true)));
    CHECK(verify(filled.cache, {}, 0, go_on).blobs == 1);
    damage(filled.cache.file(repo, commit_a, "build/x/a.so"));
    const auto report = verify(filled.cache, {}, 0, go_on);
    REQUIRE(report.damaged.size() == 1);
    CHECK(report.damaged[0].file == filled.cache.file(repo, commit_a, "build/x/a.so"));
    remove_damaged(filled.cache, report.damaged);
    CHECK_FALSE(has_file(filled.cache, repo, commit_a, "build/x/a.so"));
}

TEST_CASE("links that lead nowhere are damage", "[cache]") {
    const FilledCache filled;
    filled.add(repo, commit_a, "v1", {{"a", "text"}, {"b", "more"}});
    fs::remove(filled.cache.blob(repo, etag_of("text")));
    const auto report = verify(filled.cache, {}, 0, go_on);
    REQUIRE(report.damaged.size() == 1);
    CHECK(report.damaged[0].paths == std::vector{commit_a + "/a"});
    CHECK_FALSE(report.damaged[0].why.empty());
    remove_damaged(filled.cache, report.damaged);
    CHECK_FALSE(fs::is_symlink(filled.cache.file(repo, commit_a, "a")));
    CHECK(verify(filled.cache, {}, 0, go_on).damaged.empty());
}

TEST_CASE("a blob that was fetched again meanwhile stays", "[cache]") {
    const FilledCache filled;
    filled.add(repo, commit_a, "v1", {{"a", "text"}});
    damage(filled.cache.blob(repo, etag_of("text")));
    const auto report = verify(filled.cache, {}, 0, go_on);
    REQUIRE(report.damaged.size() == 1);
    filled.add(repo, commit_a, "v1", {{"a", "text"}});
    remove_damaged(filled.cache, report.damaged);
    CHECK(has_file(filled.cache, repo, commit_a, "a", 4));
}

TEST_CASE("verifying can be interrupted", "[cache]") {
    const FilledCache filled;
    filled.add(repo, commit_a, "v1", {{"a", "text"}});
    const std::atomic<bool> stop{true};
    const auto error = error_of([&] { verify(filled.cache, {}, 0, stop); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::interrupted);
}

TEST_CASE("prune keeps what is needed", "[cache]") {
    for (const bool symlinks : {true, false}) {
        const FilledCache filled({.symlinks = symlinks});
        fill(filled);
        filled.folder.write("hub/models--org--name/refs/main", "a model");
        const std::vector<Keep> keep = {{repo, commit_a, std::vector<std::string>{"x"}},
                                        {other, commit_a, std::nullopt}};
        const Removal removal = plan_prune(filled.cache, keep);
        CHECK(removal.revisions.size() == 2);
        CHECK(removal.bytes == 8 + 6);
        CHECK(has_file(filled.cache, repo, commit_b, "README.md"));  // nothing is done yet

        CHECK(cache::remove(filled.cache, removal) == 8 + 6);
        CHECK(has_file(filled.cache, repo, commit_a, "build/x/a.so"));
        CHECK(has_file(filled.cache, repo, commit_a, "README.md"));
        CHECK_FALSE(fs::exists(filled.cache.snapshot(repo, commit_a) / "build" / "y"));
        CHECK_FALSE(fs::exists(filled.cache.snapshot(repo, commit_b)));
        CHECK_FALSE(find_commit(filled.cache, repo, "v2"));
        CHECK(find_commit(filled.cache, repo, "v1") == commit_a);
        CHECK_FALSE(read_tree(filled.cache, repo, commit_b));
        CHECK(has_file(filled.cache, other, commit_a, "build/x/a.so"));
        CHECK(fs::exists(filled.cache.root() / "models--org--name/refs/main"));
        CHECK(verify(filled.cache, {}, 0, go_on).damaged.empty());
        CHECK(cache::remove(filled.cache, plan_prune(filled.cache, keep)) == 0);
    }
}

TEST_CASE("variants asked for twice are added up", "[cache]") {
    const FilledCache filled;
    fill(filled);
    using Names = std::vector<std::string>;
    CHECK(plan_prune(filled.cache, {{repo, commit_a, Names{"x"}},
                                    {repo, commit_a, Names{"y"}},
                                    {repo, commit_b, Names{}},
                                    {repo, commit_b, std::nullopt},
                                    {other, commit_a, std::nullopt}})
              .files.empty());
}

TEST_CASE("without anything to keep, nothing of the kernels is left", "[cache]") {
    const FilledCache filled;
    fill(filled);
    filled.folder.write("hub/kernels--org--name/.no_exist/" + commit_a + "/x", "");
    cache::remove(filled.cache, plan_prune(filled.cache, {}));
    CHECK(list(filled.cache).empty());
    CHECK_FALSE(fs::exists(filled.cache.repository(repo)));
}

TEST_CASE("left-overs are cleaned, but for those in use", "[cache]") {
    const FilledCache filled;
    fill(filled);
    const std::string blobs = "hub/kernels--org--name/blobs/";
    const std::string orphan(40, '1');
    const std::string busy(40, '2');
    const std::string unused = etag_of("unused");
    filled.folder.write(blobs + orphan + ".0123abcd.incomplete", "part");
    filled.folder.write(blobs + busy + ".0123abcd.incomplete", "part");
    filled.folder.write(blobs + unused, "unused");
    const auto old = filled.folder.write(blobs + "tmp_old", "");
    filled.folder.write(blobs + "tmp_new", "");
    fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(1));
    const auto before = count_of(filled.cache.repository(repo));
    const auto lock = BlobLock::try_lock(filled.cache, repo, busy);
    const Removal removal = plan_clean(filled.cache);
    CHECK(removal.bytes == 4 + 4 + 6);
    CHECK(cache::remove(filled.cache, removal) == 4 + 6);
    CHECK(count_of(filled.cache.repository(repo)) == before - 3);
    CHECK(fs::exists(filled.folder / (blobs + busy + ".0123abcd.incomplete")));
    CHECK(fs::exists(filled.folder / (blobs + "tmp_new")));
}

TEST_CASE("a partial file of something that is kept stays", "[cache]") {
    const FilledCache filled;
    fill(filled);
    const auto etag = etag_of("binary a", true);
    const auto path =
        filled.folder.write("hub/kernels--org--name/blobs/" + etag + ".0123abcd.incomplete", "bin");
    fs::remove(filled.cache.blob(repo, etag));
    cache::remove(filled.cache, plan_prune(filled.cache, {{repo, commit_a, std::nullopt}}));
    CHECK(fs::exists(path));
}

TEST_CASE("a blob that is linked to after the plan was made stays", "[cache]") {
    const FilledCache filled;
    fill(filled);
    const Removal removal =
        plan_prune(filled.cache, {{repo, commit_a, std::nullopt}, {other, commit_a, std::nullopt}});
    filled.add(repo, std::string(40, 'c'), "main", {{"README.md", "second"}});
    cache::remove(filled.cache, removal);
    CHECK(has_file(filled.cache, repo, std::string(40, 'c'), "README.md", 6));
}

TEST_CASE("shared blobs go with their last link", "[cache]") {
    const FilledCache filled;
    fill(filled);
    const auto etag = etag_of("binary a", true);
    const std::string name(64, 'e');
    const auto shared = filled.folder.write("hub/blobs/ee/" + name, "binary a");
    std::string list_text;
    for (const std::string& repo_id : {repo, other}) {
        const auto blob = filled.cache.blob(repo_id, etag);
        fs::remove(blob);
        fs::create_symlink("../../blobs/ee/" + name, blob);
        list_text += blob.lexically_relative(filled.cache.root()).string() + "\n";
    }
    filled.folder.write("hub/blobs/ee/" + name + ".refs", list_text + "../x\nnonsense\n");
    CHECK(verify(filled.cache, {}, 0, go_on).damaged.empty());
    CHECK(list(filled.cache).size() == 2);
    cache::remove(filled.cache, plan_prune(filled.cache, {{other, commit_a, std::nullopt}}));
    CHECK(has_file(filled.cache, other, commit_a, "build/x/a.so"));
    CHECK(fs::exists(shared));
    cache::remove(filled.cache, plan_prune(filled.cache, {}));
    CHECK_FALSE(fs::exists(shared));
    CHECK_FALSE(fs::exists(shared.string() + ".refs"));
}
