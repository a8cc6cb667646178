#include "tuning/store.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <thread>

#include "base/temp_folder.h"
#include "catch.h"
#include "target/virtual_machine.h"
#include "tuning/collection.h"
#include "tuning/samples.h"

using namespace twinkle;
using namespace twinkle::tuning;
using test::an_entry;
namespace fs = std::filesystem;

namespace {

std::vector<fs::path> files_below(const fs::path& folder) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        if (!entry.is_directory()) {
            files.push_back(entry.path());
        }
    }
    return files;
}

void overwrite(const fs::path& file, const std::string& text) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
}

Store::Found found_in(const Store& store) {
    return store.find(test::an_environment(), test::an_invocation());
}

// Ends without the destructors of this program.
template <class Work>
pid_t in_child(Work work) {
    const pid_t child = ::fork();
    if (child == 0) {
        work();
        ::_exit(0);
    }
    return child;
}

}  // namespace

TEST_CASE("what is put is found by another store of the folder") {
    const test::TempFolder folder;
    CHECK(found_in(Store(folder / "store")).entries.empty());
    CHECK(Store(folder / "store").put(an_entry(1000)).empty());
    CHECK(Store(folder / "store").put(an_entry(900, 256)).empty());
    const auto found = found_in(Store(folder / "store"));
    REQUIRE(found.entries.size() == 2);
    CHECK(found.rejected.empty());
    std::set<std::string> texts;
    for (const Entry& entry : found.entries) {
        texts.insert(entry.text());
    }
    CHECK(texts == std::set{an_entry(1000).text(), an_entry(900, 256).text()});
    CHECK(Store(folder / "store").all().entries.size() == 2);
    CHECK(Store(folder / "store")
              .find(test::an_environment("another CPU"), test::an_invocation())
              .entries.empty());
}

TEST_CASE("a measurement that is worse does not replace a better one") {
    const test::TempFolder folder;
    const Store store(folder.path());
    CHECK(store.put(an_entry(1000, 128, Role::other, 50)).empty());
    CHECK(store.put(an_entry(900, 128, Role::other, 5)).empty());
    CHECK(found_in(store).entries.at(0).times.runs == 50);
    CHECK(store.put(an_entry(900, 128, Role::other, 500)).empty());
    CHECK(found_in(store).entries.at(0).times.runs == 500);
}

TEST_CASE("the usual place is in the user's cache") {
    test::VirtualMachine machine;
    machine.variables = {{"HOME", "/home/somebody"}};
    CHECK(Store::usual_place(machine) == "/home/somebody/.cache/twinkle/tuning");
    machine.variables["XDG_CACHE_HOME"] = "/caches";
    CHECK(Store::usual_place(machine) == "/caches/twinkle/tuning");
    machine.variables["XDG_CACHE_HOME"] = "caches";  // the specification: ignored
    CHECK(Store::usual_place(machine) == "/home/somebody/.cache/twinkle/tuning");
}

TEST_CASE("what cannot be read is a miss with its reason, and a later write repairs it") {
    const test::TempFolder folder;
    const Store store(folder.path());
    REQUIRE(store.put(an_entry(1000)).empty());
    const fs::path file = files_below(folder.path()).at(0);
    const std::string good = entry_file(an_entry(1000));
    const std::vector<std::pair<std::string, Miss>> damages{
        {"", Miss::damaged},
        {good.substr(0, good.size() / 2), Miss::damaged},
        {std::string(1 << 20, '{'), Miss::too_large},
        {entry_file(an_entry(1000, 256)), Miss::wrong_key},
        {R"({"schema": "twinkle.tuned/1", "checksum": 1})", Miss::damaged}};
    for (const auto& [text, miss] : damages) {
        overwrite(file, text);
        const auto found = found_in(store);
        CHECK(found.entries.empty());
        REQUIRE(found.rejected.size() == 1);
        CHECK(found.rejected[0].rejected.miss == miss);
        CHECK_FALSE(found.rejected[0].rejected.why.empty());
        CHECK(found.rejected[0].file == file);
        CHECK(store.put(an_entry(1000)).empty());
        CHECK(found_in(store).entries.size() == 1);
    }
}

TEST_CASE("an entry of a newer version is left alone") {
    const test::TempFolder folder;
    const Store store(folder.path());
    REQUIRE(store.put(an_entry(1000)).empty());
    const fs::path file = files_below(folder.path()).at(0);
    overwrite(file, R"({"schema": "twinkle.tuned/7"})");
    CHECK(found_in(store).rejected.at(0).rejected.miss == Miss::other_version);
    CHECK(store.put(an_entry(1000)) == "another version of twinkle has written it");
    CHECK(fs::file_size(file) < 100);
}

TEST_CASE("another device's entry under this one's name is not believed") {
    const test::TempFolder folder;
    const Store store(folder.path());
    REQUIRE(store.put(an_entry(1000)).empty());
    Entry foreign = an_entry(1);
    foreign.environment = test::an_environment("another CPU");
    overwrite(files_below(folder.path()).at(0), entry_file(foreign));
    CHECK(found_in(store).entries.empty());
    CHECK(found_in(store).rejected.at(0).rejected.miss == Miss::wrong_key);
}

TEST_CASE("no symbolic link below the root is followed") {
    const test::TempFolder folder;
    const Store store(folder / "store");
    REQUIRE(store.put(an_entry(1000)).empty());
    const fs::path file = files_below(folder / "store").at(0);
    const fs::path invocation = file.parent_path();
    const fs::path environment = invocation.parent_path();
    const auto linked = [&](const fs::path& path) {
        fs::rename(path, folder / "aside");
        fs::create_symlink(folder / "aside", path);
        const auto found = found_in(store);
        CHECK(found.entries.empty());
        REQUIRE(found.rejected.size() == 1);
        CHECK(found.rejected[0].rejected.miss == Miss::link);
        CHECK_FALSE(store.all().rejected.empty());
        CHECK_FALSE(store.put(an_entry(900, 128, Role::other, 99)).empty());
        store.clear();
        fs::remove(path);
        fs::create_directories(path.parent_path());  // clear takes folders that are empty
        fs::rename(folder / "aside", path);
        CHECK(found_in(store).entries.at(0).times.runs == 10);  // nothing behind the link changed
    };
    linked(file);
    linked(invocation);
    linked(environment);
    linked(folder / "store/v1");
}

TEST_CASE("things that are no files are misses") {
    const test::TempFolder folder;
    const Store store(folder.path());
    REQUIRE(store.put(an_entry(1000)).empty());
    const fs::path file = files_below(folder.path()).at(0);
    fs::remove(file);
    REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
    CHECK(found_in(store).rejected.at(0).rejected.miss == Miss::damaged);
    fs::remove(file);
    fs::create_directory(file);
    CHECK(found_in(store).entries.empty());
    CHECK_FALSE(store.put(an_entry(1000)).empty());
}

TEST_CASE("clear takes what a store has written, and nothing else") {
    const test::TempFolder folder;
    const Store store(folder / "store");
    REQUIRE(store.put(an_entry(1000)).empty());
    REQUIRE(store.put(an_entry(900, 256)).empty());
    const fs::path invocation = files_below(folder / "store").at(0).parent_path();
    overwrite(invocation / ".entry.0123.tmp", "half");
    const auto cleared = store.clear();
    CHECK(cleared.entries == 2);
    CHECK(cleared.problem.empty());
    CHECK(files_below(folder / "store").empty());
    REQUIRE(store.put(an_entry(1000)).empty());
    overwrite(invocation / "notes.txt", "somebody's");
    fs::create_directory(invocation / (std::string(32, '0') + ".json"));
    const auto again = store.clear();
    CHECK(again.entries == 1);
    CHECK(again.problem.empty());
    CHECK(files_below(folder / "store") == std::vector{invocation / "notes.txt"});
}

TEST_CASE("a full disk is said, and what was there stays") {
    const test::TempFolder folder;
    const Store store(folder.path());
    REQUIRE(store.put(an_entry(1000)).empty());
    // A limit on the size of files stands in for a full disk: the write itself fails half-way.
    const pid_t child = in_child([&] {
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{100, 100};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        const std::string why = store.put(an_entry(900, 128, Role::other, 99));
        const std::string other = store.put(an_entry(900, 512));
        ::_exit(!why.empty() && !other.empty() ? 0 : 1);
    });
    int status = 1;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
    CHECK(found_in(store).entries.size() == 1);
    CHECK(found_in(store).entries.at(0).times.runs == 10);
    CHECK(found_in(store).rejected.empty());
}

TEST_CASE("a folder that cannot be written is said") {
    const test::TempFolder folder;
    const fs::path file = folder.write("file", "in the place of a folder");
    CHECK_FALSE(Store(file).put(an_entry(1000)).empty());
    CHECK(found_in(Store(file)).entries.empty());
    CHECK(Store("/proc/nothing/here").all().entries.empty());
    CHECK_FALSE(Store("/proc/nothing/here").put(an_entry(1000)).empty());
    CHECK_FALSE(Store("/proc/nothing/here")
                    .lease(test::an_environment(), test::an_invocation(), std::chrono::seconds(1))
                    .problem.empty());
}

TEST_CASE("32 processes write at once: nothing is lost, nothing is half") {
    const test::TempFolder folder;
    const Store store(folder.path());
    std::vector<pid_t> children;
    for (int writer = 0; writer < 32; ++writer) {
        children.push_back(in_child([&] {
            for (int i = 0; i < 10; ++i) {
                store.put(an_entry(1000 + writer, 1000 + writer * 10 + i));  // its own
                store.put(an_entry(1000, 128, Role::other, 10 + writer));    // everybody's
            }
        }));
    }
    for (const pid_t child : children) {
        int status = 1;
        ::waitpid(child, &status, 0);
        CHECK(status == 0);
        CHECK(found_in(store).rejected.empty());
    }
    const auto found = found_in(store);
    CHECK(found.entries.size() == 32 * 10 + 1);
    CHECK(found.rejected.empty());
    CHECK(files_below(folder.path()).size() == found.entries.size());
}

TEST_CASE("a hundred kills at random moments leave whole entries") {
    const test::TempFolder folder;
    const Store store(folder.path());
    std::mt19937 random(5);
    std::size_t before = 0;
    for (int kill = 0; kill < 100; ++kill) {
        const pid_t child = in_child([&] {
            for (int i = 0;; ++i) {
                store.put(an_entry(1000 + i % 7, 100 + (kill * 37 + i) % 300, Role::other, 10 + i));
            }
        });
        ::usleep(random() % 4000);
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        const auto found = found_in(store);
        CHECK(found.rejected.empty());
        CHECK(found.entries.size() >= before);
        before = found.entries.size();
    }
    CHECK(before > 0);
    CHECK(store.put(an_entry(1000, 1)).empty());
    store.clear();
    CHECK(files_below(folder.path()).empty());  // what the kills have left, too
}
