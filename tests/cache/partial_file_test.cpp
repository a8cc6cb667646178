#include "cache/partial_file.h"

#include <sys/wait.h>
#include <unistd.h>

#include "../base/throws.h"
#include "catch.h"
#include "filled_cache.h"

using namespace twinkle;
using namespace twinkle::cache;
using namespace twinkle::test;
namespace fs = std::filesystem;

namespace {

const std::string etag(40, '1');
const std::string blobs = "hub/kernels--org--name/blobs/";

std::string pattern(std::size_t size) {
    std::string text;
    for (std::size_t i = 0; i < size; ++i) {
        text += static_cast<char>('a' + i % 23);
    }
    return text;
}

struct Place {
    Place() { prepare_repository(cache, repo); }
    std::vector<fs::path> leftovers() const {
        const auto files = list_partial_files(cache, repo);
        const auto found = files.find(etag);
        return found == files.end() ? std::vector<fs::path>() : found->second;
    }
    std::size_t entries() const {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(cache.blobs(repo)), fs::directory_iterator()));
    }
    TempFolder folder;
    Cache cache{folder / "hub"};
};

}  // namespace

TEST_CASE("a blob has its name when it is whole, not before", "[cache]") {
    const Place place;
    const std::string text = pattern(1000);
    {
        PartialFile file(place.cache, repo, etag, 1000, 0);
        file.append(0, text.substr(0, 600));
        CHECK(file.front() == 600);
        CHECK_FALSE(fs::exists(place.cache.blob(repo, etag)));
        file.append(0, text.substr(600));
        file.finish();
    }
    CHECK(place.folder.read(blobs + etag) == text);
    CHECK(place.entries() == 1);
}

TEST_CASE("what arrived is kept, and nothing where nothing arrived", "[cache]") {
    const Place place;
    {
        const PartialFile file(place.cache, repo, etag, 1000, 0);
    }
    CHECK(place.entries() == 0);
    {
        PartialFile file(place.cache, repo, etag, 1000, 0);
        file.append(0, "abc");
    }
    CHECK(place.entries() == 1);
    {
        PartialFile file(place.cache, repo, etag, 1000, 0, place.leftovers());
        CHECK(file.resumed() == 3);
        CHECK(file.front() == 3);
        file.discard();
    }
    CHECK(place.entries() == 0);
}

TEST_CASE("the left-over that has most is adopted, the others go", "[cache]") {
    const Place place;
    const std::string text = pattern(10);
    place.folder.write(blobs + etag + ".0000000a.incomplete", text.substr(0, 3));
    place.folder.write(blobs + etag + ".0000000b.incomplete", text.substr(0, 7));
    place.folder.write(blobs + etag + ".incomplete", text.substr(0, 5));     // old Python tools
    place.folder.write(blobs + etag + ".0000000c.incomplete", pattern(11));  // too long
    place.folder.write(blobs + std::string(40, '2') + ".0000000a.incomplete", "other");
    place.folder.write(blobs + etag + ".x.incomplete", "not one");
    fs::create_symlink("/etc/passwd", place.folder / (blobs + etag + ".0000000d.incomplete"));
    PartialFile file(place.cache, repo, etag, 10, 0, place.leftovers());
    CHECK(file.resumed() == 7);
    file.append(0, text.substr(7));
    file.finish();
    CHECK(place.folder.read(blobs + etag) == text);
    CHECK(place.entries() == 3);
}

TEST_CASE("segments are filled in any order", "[cache]") {
    const Place place;
    const std::string text = pattern(100);
    {
        PartialFile file(place.cache, repo, etag, 100, 30);
        REQUIRE(file.segments().size() == 4);
        CHECK(file.segments()[3].begin == 90);
        CHECK(file.segments()[3].end == 100);
        file.append(3, text.substr(90));
        file.append(1, text.substr(30, 10));
        CHECK(file.front() == 0);
        file.append(0, text.substr(0, 30));
        CHECK(file.front() == 40);
        char buffer[40];
        file.read(0, buffer, 40);
        CHECK(std::string(buffer, 40) == text.substr(0, 40));
        CHECK_THROWS_AS(file.append(1, pattern(21)), Error);
    }
    // Another process continues, even if it would divide the file differently.
    PartialFile file(place.cache, repo, etag, 100, 50, place.leftovers());
    REQUIRE(file.segments().size() == 4);
    CHECK(file.resumed() == 50);
    CHECK(file.front() == 40);
    CHECK(file.segments()[3].complete());
    file.append(1, text.substr(40, 20));
    file.append(2, text.substr(60, 30));
    CHECK(file.front() == 100);
    file.finish();
    CHECK(place.folder.read(blobs + etag) == text);
}

TEST_CASE("a killed process promises nothing that it has not written", "[cache]") {
    const Place place;
    const std::string text = pattern(8 << 20);
    const pid_t child = ::fork();
    if (child == 0) {
        auto* file = new PartialFile(place.cache, repo, etag, text.size(), 4 << 20);
        file->append(1, text.substr(4 << 20, 3 << 20));
        file->append(0, text.substr(0, 100));
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    PartialFile file(place.cache, repo, etag, text.size(), 4 << 20, place.leftovers());
    CHECK(file.segments()[0].written == 0);  // too little to be written down
    CHECK(file.segments()[1].written == 3 << 20);
}

TEST_CASE("a prefix is adopted into segments, up to its first hole", "[cache]") {
    const Place place;
    const std::string text = pattern(256 << 10);
    const auto path =
        place.folder.write(blobs + etag + ".0000000a.incomplete", text.substr(0, 100 << 10));
    {
        PartialFile file(place.cache, repo, etag, text.size(), 64 << 10, place.leftovers());
        CHECK(file.resumed() == 100 << 10);
        CHECK(file.segments()[0].complete());
        CHECK(file.segments()[1].written == 36 << 10);
        file.append(1, text.substr(100 << 10, 28 << 10));
        file.discard();
    }
    place.folder.write(blobs + etag + ".0000000a.incomplete", text.substr(0, 64 << 10));
    REQUIRE(::truncate(path.c_str(), 200 << 10) == 0);
    const PartialFile file(place.cache, repo, etag, text.size(), 64 << 10, place.leftovers());
    CHECK(file.resumed() < 200 << 10);
}

TEST_CASE("a record that contradicts itself is none", "[cache]") {
    const Place place;
    const auto adopts = [&](const std::string& tail) {
        place.folder.write(blobs + etag + ".0000000a.incomplete", pattern(100) + tail);
        PartialFile file(place.cache, repo, etag, 100, 30, place.leftovers());
        const bool adopted = file.resumed() > 0;
        file.discard();
        fs::remove(place.folder / (blobs + etag + ".0000000a.incomplete"));
        return adopted;
    };
    const auto number = [](std::uint64_t value) {
        std::string bytes;
        for (int i = 0; i < 8; ++i) {
            bytes += static_cast<char>(value >> (8 * i) & 0xff);
        }
        return bytes;
    };
    const std::string magic = "twinkle1";
    CHECK(adopts(magic + number(50) + number(50) + number(7)));
    CHECK_FALSE(adopts("twinkle2" + number(50) + number(50) + number(7)));
    CHECK_FALSE(adopts(magic + number(50) + number(51) + number(7)));  // longer than its segment
    CHECK_FALSE(adopts(magic + number(50) + number(50)));              // one number missing
    CHECK_FALSE(adopts(magic + number(0) + number(0) + number(0)));
    CHECK_FALSE(adopts(magic + number(~0ull) + number(1) + number(1)));
    CHECK_FALSE(adopts(magic));
    CHECK_FALSE(adopts("x"));
}

TEST_CASE("a new start leaves the old file alone", "[cache]") {
    const Place place;
    PartialFile file(place.cache, repo, etag, 100, 30);
    file.append(0, "abc");
    file.restart();
    CHECK(file.segments().size() == 1);
    CHECK(file.front() == 0);
    file.append(0, pattern(100));
    // Another process without a lock has taken the name; the bytes are still ours.
    for (const fs::path& path : place.leftovers()) {
        fs::rename(path, place.folder / (blobs + etag + ".0000000f.incomplete"));
    }
    file.finish();
    CHECK(place.folder.read(blobs + etag) == pattern(100));
}
