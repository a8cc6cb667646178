#include "cache/blob_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "catch.h"
#include "filled_cache.h"

using namespace twinkle;
using namespace twinkle::cache;
using namespace twinkle::test;
namespace fs = std::filesystem;

namespace {

const std::string etag(40, '1');

// Tries the lock in another process: 0 it has the lock, 1 somebody else has.
int try_in_child(const Cache& cache, bool keep) {
    const pid_t child = ::fork();
    if (child == 0) {
        auto lock = BlobLock::try_lock(cache, repo, etag);
        if (keep && lock) {
            new BlobLock(std::move(*lock));  // a process that is killed releases nothing
        } else {
            lock.reset();
        }
        ::_exit(lock || keep ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

bool free_for_child(const Cache& cache) {
    const pid_t child = ::fork();
    if (child == 0) {
        int result = 1;
        {
            const auto lock = BlobLock::try_lock(cache, repo, etag);
            result = lock ? 0 : 1;
        }
        ::_exit(result);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("a lock is one process's, whatever the file system has", "[cache]") {
    for (const bool flock : {true, false}) {
        const TempFolder folder;
        const Cache cache(folder / "hub", {.flock = flock});
        CHECK(free_for_child(cache));
        {
            auto lock = BlobLock::try_lock(cache, repo, etag);
            REQUIRE(lock);
            CHECK_FALSE(free_for_child(cache));
            CHECK_FALSE(BlobLock::try_lock(cache, repo, etag));
            CHECK(lock_holder(cache, repo, etag) == "process " + std::to_string(::getpid()));
            lock->refresh();
            const BlobLock moved = std::move(*lock);
            CHECK_FALSE(free_for_child(cache));
        }
        CHECK(free_for_child(cache));
        CHECK(fs::exists(cache.lock_file(repo, etag)) == flock);
    }
}

TEST_CASE("the lock of a process that was killed is free", "[cache]") {
    for (const bool flock : {true, false}) {
        const TempFolder folder;
        const Cache cache(folder / "hub", {.flock = flock});
        try_in_child(cache, true);
        CHECK(fs::exists(cache.lock_file(repo, etag)));
        CHECK(free_for_child(cache));
    }
}

TEST_CASE("a marker is believed as long as its process may live", "[cache]") {
    const TempFolder folder;
    const Cache cache(folder / "hub", {.flock = false});
    const auto path = cache.lock_file(repo, etag);
    fs::create_directories(path.parent_path());
    const auto age = [&](std::chrono::seconds seconds) {
        fs::last_write_time(path, fs::file_time_type::clock::now() - seconds);
    };
    std::ofstream(path) << "4711\nelsewhere\n";
    CHECK_FALSE(free_for_child(cache));
    CHECK(lock_holder(cache, repo, etag) == "process 4711 on elsewhere");
    age(std::chrono::hours(1));
    CHECK(free_for_child(cache));

    std::ofstream(path) << "";  // just created, or its writer died
    CHECK_FALSE(free_for_child(cache));
    CHECK(lock_holder(cache, repo, etag).empty());
    age(std::chrono::minutes(1));
    CHECK(free_for_child(cache));
    CHECK(fs::is_empty(path.parent_path()));
}

TEST_CASE("waiting ends when the lock is free, or when the caller has enough", "[cache]") {
    const TempFolder folder;
    const Cache cache(folder / "hub");
    auto held = BlobLock::try_lock(cache, repo, etag);
    REQUIRE(held);
    int asked = 0;
    CHECK_THROWS_AS(BlobLock::lock(cache, repo, etag,
                                   [&](const std::string&) {
                                       if (++asked == 2) {
                                           throw std::runtime_error("enough");
                                       }
                                   }),
                    std::runtime_error);
    const auto lock = BlobLock::lock(cache, repo, etag, [&](const std::string& holder) {
        CHECK(holder == "process " + std::to_string(::getpid()));
        held.reset();
    });
    CHECK_FALSE(free_for_child(cache));
}
