#include "operations/hash_memory.h"

#include <atomic>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "base/temp_folder.h"
#include "catch.h"

using namespace twinkle;
using namespace twinkle::operations;
namespace fs = std::filesystem;

namespace {

HashJob job_for(const fs::path& file) {
    HashJob job;
    job.file = file;
    return job;
}

HashJob hashed(const fs::path& file) {
    std::vector<HashJob> jobs{job_for(file)};
    const std::atomic<bool> stop{false};
    hash_files(jobs, stop, [](std::uint64_t, std::uint64_t) {});
    return jobs.front();
}

}  // namespace

TEST_CASE("what changed while it was hashed is not remembered") {
    const test::TempFolder folder;
    const fs::path file = folder / "file";
    base::write_file_atomically(file, "as it was");
    HashMemory memory(folder / "memory.json");
    const auto before = HashMemory::identity_of(file);
    const HashJob read = hashed(file);
    SECTION("it did not change") {
        memory.remember(read, before);
        HashJob again = job_for(file);
        REQUIRE(memory.recall(again));
        CHECK(again.sha256_bytes == read.sha256_bytes);
        CHECK(again.size == 9);
    }
    SECTION("another file has taken its place") {
        base::write_file_atomically(file, "as it is.");
        memory.remember(read, before);
        HashJob again = job_for(file);
        CHECK_FALSE(memory.recall(again));
    }
    SECTION("it is gone, or was not there before") {
        memory.remember(read, "");
        fs::remove(file);
        memory.remember(read, before);
        base::write_file_atomically(file, "as it was");
        HashJob again = job_for(file);
        CHECK_FALSE(memory.recall(again));
    }
}
