#include "cache/content_hash.h"

#include "../base/temp_folder.h"
#include "../base/throws.h"
#include "catch.h"

using namespace twinkle;
using namespace twinkle::cache;

TEST_CASE("contents have the hashes that git and sha256sum give them", "[cache]") {
    const std::string git = "ce013625030ba8dba906f756967f9e9ca394464a";
    const std::string sha = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
    CHECK(hash_bytes("hello\n", HashKind::git_sha1) == git);
    CHECK(hash_bytes("hello\n", HashKind::sha256) == sha);
    CHECK(hash_bytes("", HashKind::git_sha1) == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");

    const test::TempFolder folder;
    const auto file = folder.write("f", "hello\n");
    std::size_t seen = 0;
    CHECK(hash_file_as(file, kind_of_etag(git), [&](std::size_t bytes) { seen += bytes; }) == git);
    CHECK(hash_file_as(file, kind_of_etag(sha)) == sha);
    CHECK(seen == 6);
    const auto error = test::error_of([&] { hash_file_as(folder / "none", HashKind::sha256); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::not_found);
}
