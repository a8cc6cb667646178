#include "base/file.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "base/temp_folder.h"
#include "base/throws.h"
#include "catch.h"

using namespace twinkle;
using namespace twinkle::base;
using test::error_of;
using test::TempFolder;
namespace fs = std::filesystem;

TEST_CASE("read_file reads whole files and names what is wrong") {
    TempFolder folder;
    folder.write("a", std::string("x\0y\n", 4));
    CHECK(read_file(folder / "a", "thing") == std::string("x\0y\n", 4));
    folder.write("empty", "");
    CHECK(read_file(folder / "empty", "thing").empty());

    auto missing = error_of([&] { read_file(folder / "b", "thing"); });
    REQUIRE(missing);
    CHECK(missing->code() == ErrorCode::not_found);
    CHECK(missing->details().what == "cannot read the thing");

    CHECK(error_of([&] { read_file(folder.path(), "thing"); })->code() == ErrorCode::malformed);
    CHECK(error_of([&] { read_file(folder / "a", "thing", 3); })->code() == ErrorCode::malformed);
    CHECK(read_file(folder / "a", "thing", 4).size() == 4);

    REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
    CHECK(error_of([&] { read_file(folder / "pipe", "thing"); })->code() == ErrorCode::malformed);
}

TEST_CASE("files that the kernel makes have no size, and are read all the same") {
    CHECK(!read_file("/proc/self/status", "status").empty());
    CHECK(error_of([] { read_file("/proc/self/status", "status", 10); })->code() ==
          ErrorCode::malformed);
}

TEST_CASE("atomic writes replace, keep permissions and links, and leave nothing behind") {
    TempFolder folder;
    const auto file = folder.write("a", "old");
    ::chmod(file.c_str(), 0640);
    write_file_atomically(file, "new");
    CHECK(folder.read("a") == "new");
    struct stat info{};
    ::stat(file.c_str(), &info);
    CHECK((info.st_mode & 0777) == 0640);

    fs::create_symlink("a", folder / "link");
    write_file_atomically(folder / "link", "through");
    CHECK(folder.read("a") == "through");
    CHECK(fs::is_symlink(folder / "link"));

    const mode_t old = ::umask(027);
    write_file_atomically(folder / "b", "");
    ::umask(old);
    ::stat((folder / "b").c_str(), &info);
    CHECK((info.st_mode & 0777) == 0640);

    {
        AtomicFile dropped(folder / "c");
    }
    CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 3);
}

TEST_CASE("a write that fails keeps the old file and says why") {
    TempFolder folder;
    folder.write("a", "old");
    const auto missing = error_of([&] { write_file_atomically(folder / "no/b", "x"); });
    REQUIRE(missing);
    CHECK(missing->code() == ErrorCode::failed);
    CHECK(missing->details().hint.find("mkdir -p") != std::string::npos);
    CHECK(error_of([&] { write_file_atomically(folder.path(), "x"); })->details().why ==
          "it is a folder");

    // A limit on the file size simulates a full disk: the write itself fails half-way.
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{1000, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    const auto full =
        error_of([&] { write_file_atomically(folder / "a", std::string(5000, 'x')); });
    ::setrlimit(RLIMIT_FSIZE, &before);
    REQUIRE(full);
    CHECK(full->code() == ErrorCode::failed);
    CHECK(folder.read("a") == "old");
    CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);

    if (fs::exists("/dev/full")) {
        CHECK(error_of([] { write_file_atomically("/dev/full", "x"); })->details().why ==
              "the disk is full");
    }
    write_file_atomically("/dev/null", "x");
    CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("list_files sorts, skips folders' links and keeps to the folder") {
    TempFolder folder;
    folder.write("root/b/c", "");
    folder.write("root/a", "");
    folder.write("root/b.txt", "");
    folder.write("outside", "secret");
    fs::create_symlink("a", folder / "root/z");
    fs::create_directory_symlink("b", folder / "root/folder");
    const std::vector<std::string> expected{"a", "b.txt", "b/c", "z"};
    CHECK(list_files(folder / "root") == expected);

    fs::create_symlink("../outside", folder / "root/leak");
    CHECK(error_of([&] { list_files(folder / "root"); })->code() == ErrorCode::refused);
    fs::remove(folder / "root/leak");
    fs::create_symlink("nowhere", folder / "root/dangling");
    CHECK(error_of([&] { list_files(folder / "root"); })->code() == ErrorCode::refused);
    CHECK(error_of([&] { list_files(folder / "gone"); })->code() == ErrorCode::not_found);
}

TEST_CASE("list_files follows a Hub cache into its blobs, in both layouts") {
    TempFolder folder;
    folder.write("hub/blobs/ab/cd", "new layout");
    folder.write("hub/kernels--o--n/blobs/one", "1");
    fs::create_symlink("../../blobs/ab/cd", folder / "hub/kernels--o--n/blobs/two");
    const auto variant = folder / "hub/kernels--o--n/snapshots/abc/build/v";
    fs::create_directories(variant);
    fs::create_symlink("../../../../blobs/one", variant / "one");
    fs::create_symlink("../../../../blobs/two", variant / "two");
    CHECK(list_files(variant) == std::vector<std::string>{"one", "two"});
    folder.write("hub/kernels--x--y/blobs/other", "2");
    fs::create_symlink("../../../../../kernels--x--y/blobs/other", variant / "three");
    CHECK(error_of([&] { list_files(variant); })->code() == ErrorCode::refused);
}
