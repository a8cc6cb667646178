#include "tuning/lease.h"

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/host_name.h"
#include "base/temp_folder.h"
#include "catch.h"

using namespace twinkle;
using namespace twinkle::tuning;
using std::chrono::hours;
using std::chrono::seconds;
namespace fs = std::filesystem;

namespace {

struct SetClock {
    std::chrono::system_clock::time_point now = std::chrono::system_clock::now();
    Clock clock() {
        return [this] { return now; };
    }
};

std::string lease_of(const std::string& host, int process, std::int64_t deadline,
                     std::int64_t taken = 1) {
    return R"({"taken":)" + std::to_string(taken) + R"(,"deadline":)" + std::to_string(deadline) +
           R"(,"process":)" + std::to_string(process) + R"(,"host":")" + host + "\"}";
}

std::int64_t in(const SetClock& time, seconds later) {
    return std::chrono::duration_cast<seconds>((time.now + later).time_since_epoch()).count();
}

}  // namespace

TEST_CASE("one has a lease at a time, and gives it back") {
    const test::TempFolder folder;
    const base::Folder root(folder.path());
    const fs::path file = folder / "a/b/lease";
    {
        const auto first = take_lease(root, file, seconds(60), system_clock());
        REQUIRE(first.lease);
        const auto second = take_lease(root, file, seconds(60), system_clock());
        CHECK_FALSE(second.lease);
        CHECK(second.holder == "process " + std::to_string(::getpid()));
        CHECK(second.problem.empty());
    }
    CHECK_FALSE(fs::exists(file));
    CHECK(take_lease(root, file, seconds(60), system_clock()).lease);
}

TEST_CASE("a lease of a process that is gone, or whose deadline has passed, is taken over") {
    const test::TempFolder folder;
    const base::Folder root(folder.path());
    SetClock time;
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    const auto taken_over = [&](const std::string& text) {
        folder.write("lease", text);
        return take_lease(root, folder / "lease", seconds(60), time.clock()).lease.has_value();
    };
    const std::string here = base::host_name();
    CHECK(taken_over(lease_of(here, child, in(time, seconds(60)))));
    CHECK(taken_over(lease_of("elsewhere", 1, in(time, seconds(-1)))));
    CHECK(taken_over(lease_of(here, ::getpid(), in(time, seconds(-1)))));
    CHECK_FALSE(taken_over(lease_of("elsewhere", 1, in(time, seconds(60)))));
    CHECK_FALSE(taken_over(lease_of(here, ::getpid(), in(time, seconds(60)))));
}

TEST_CASE("a clock that jumps makes nobody wait for ever") {
    const test::TempFolder folder;
    const base::Folder root(folder.path());
    SetClock time;
    auto first = take_lease(root, folder / "lease", seconds(600), time.clock());
    REQUIRE(first.lease);
    time.now -= hours(24);  // back: the deadline lies further ahead than any lease goes
    CHECK(take_lease(root, folder / "lease", seconds(600), time.clock()).lease);
    const auto second = take_lease(root, folder / "lease2", seconds(600), time.clock());
    time.now += hours(24);  // ahead
    CHECK(take_lease(root, folder / "lease2", seconds(600), time.clock()).lease);
}

TEST_CASE("no lease goes further than an hour") {
    const test::TempFolder folder;
    SetClock time;
    const auto lease =
        take_lease(base::Folder(folder.path()), folder / "lease", hours(1000), time.clock());
    CHECK(folder.read("lease").find(std::to_string(in(time, hours(1)))) != std::string::npos);
}

TEST_CASE("a lease that says nothing is waited for a little") {
    const test::TempFolder folder;
    const base::Folder root(folder.path());
    SetClock time;
    for (const std::string text : {"", "{", "[]", R"({"taken":-1})", R"({"a":1})"}) {
        folder.write("lease", text);
        time.now = std::chrono::system_clock::now();
        const auto now = take_lease(root, folder / "lease", seconds(60), time.clock());
        CHECK_FALSE(now.lease);
        CHECK(now.holder == "another process");
        time.now += seconds(30);
        CHECK(take_lease(root, folder / "lease", seconds(60), time.clock()).lease);
    }
}

TEST_CASE("a lease that somebody has taken over is not given back by the one before") {
    const test::TempFolder folder;
    const base::Folder root(folder.path());
    auto mine = take_lease(root, folder / "lease", seconds(60), system_clock());
    REQUIRE(mine.lease);
    const std::string theirs = lease_of("elsewhere", 1, 1);
    folder.write("lease", theirs);
    mine.lease->give_back();
    CHECK(folder.read("lease") == theirs);
}

TEST_CASE("a link in the place of a lease is not followed") {
    const test::TempFolder folder;
    const base::Folder root(folder / "store");
    fs::create_directory(folder / "store");
    const fs::path outside = folder.write("outside", "mine");
    fs::create_symlink(outside, folder / "store/lease");
    const auto attempt = take_lease(root, folder / "store/lease", seconds(60), system_clock());
    CHECK(folder.read("outside") == "mine");
    CHECK_FALSE(attempt.lease);
}

TEST_CASE("of many processes one gets the lease") {
    const test::TempFolder folder;
    const base::Folder root(folder.path());
    std::vector<pid_t> children;
    for (int i = 0; i < 16; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            const auto attempt = take_lease(root, folder / "lease", seconds(60), system_clock());
            if (attempt.lease) {
                folder.write("got." + std::to_string(::getpid()), "");
                ::usleep(300'000);  // until all have asked
            }
            ::_exit(0);
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        ::waitpid(child, nullptr, 0);
    }
    int got = 0;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
        got += entry.path().filename().string().starts_with("got.") ? 1 : 0;
    }
    CHECK(got == 1);
}
