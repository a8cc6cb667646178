#include "cache/layout.h"

#include "../base/throws.h"
#include "../target/virtual_machine.h"
#include "catch.h"

using namespace twinkle;
using namespace twinkle::cache;

TEST_CASE("the cache is where the Python tools have theirs", "[cache]") {
    test::VirtualMachine machine;
    machine.variables = {{"HOME", "/home/me"}};
    CHECK(cache_folder(machine) == "/home/me/.cache/huggingface/hub");
    machine.variables["XDG_CACHE_HOME"] = "/xdg";
    CHECK(cache_folder(machine) == "/xdg/huggingface/hub");
    machine.variables["HF_HOME"] = "~/hf";
    CHECK(cache_folder(machine) == "/home/me/hf/hub");
    machine.variables["HF_HUB_CACHE"] = "$HOME/${CACHE}/$NOT_SET/$";
    machine.variables["CACHE"] = "c";
    CHECK(cache_folder(machine) == "/home/me/c/$NOT_SET/$");
    machine.variables["KERNELS_CACHE"] = "/kernels";
    CHECK(cache_folder(machine) == "/kernels");
    machine.variables["KERNELS_CACHE"] = "";
    machine.variables["HF_HUB_CACHE"] = "";
    CHECK(cache_folder(machine) == "/home/me/hf/hub");
}

TEST_CASE("links are left out where the user says so", "[cache]") {
    test::VirtualMachine machine;
    machine.variables = {{"HOME", "/"}};
    CHECK(cache_of(machine).options().symlinks);
    for (const char* value : {"1", "on", "YES", "True"}) {
        machine.variables["HF_HUB_DISABLE_SYMLINKS"] = value;
        CHECK_FALSE(cache_of(machine).options().symlinks);
    }
    machine.variables["HF_HUB_DISABLE_SYMLINKS"] = "0";
    CHECK(cache_of(machine).options().symlinks);
}

TEST_CASE("a repository has one folder, and the folder says which", "[cache]") {
    CHECK(repository_folder("org/name") == "kernels--org--name");
    CHECK(repository_folder("single") == "kernels--single");
    CHECK(repository_of("kernels--org--name") == "org/name");
    CHECK(repository_of("kernels--single") == "single");
    for (const char* other : {"models--org--name", "blobs", ".locks", "kernels--",
                              "kernels--a--b--c", "kernels--..--x"}) {
        CHECK_FALSE(repository_of(other));
    }
    for (const char* bad : {"", "/", "a/b/c", "../x", "a/..", "a--b/c", "a/b c", "a/.b", "-a/b"}) {
        const auto error = test::error_of([&] { repository_folder(bad); });
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::malformed);
    }
}

TEST_CASE("no name leads out of its folder", "[cache]") {
    for (const char* good : {"a", "build/x/y.so", "refs/pr/1", ".gitattributes", "a..b", "ü"}) {
        CHECK(is_safe_path(good));
    }
    for (const std::string bad : {"", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a\nb"}) {
        CHECK_FALSE(is_safe_path(bad));
    }
    CHECK_FALSE(is_safe_path(std::string(300, 'x')));
    CHECK_FALSE(is_safe_path(std::string("a\0b", 3)));

    const Cache cache("/c");
    const std::string commit(40, 'a');
    CHECK(cache.file("o/n", commit, "d/f") == "/c/kernels--o--n/snapshots/" + commit + "/d/f");
    CHECK(cache.ref_file("o/n", "v1") == "/c/kernels--o--n/refs/v1");
    CHECK(cache.lock_file("o/n", commit) == "/c/.locks/kernels--o--n/" + commit + ".lock");
    CHECK_THROWS_AS(cache.file("o/n", commit, "../../x"), Error);
    CHECK_THROWS_AS(cache.file("o/n", "main", "x"), Error);
    CHECK_THROWS_AS(cache.ref_file("o/n", "../x"), Error);
    CHECK_THROWS_AS(cache.blob("o/n", std::string(40, 'A')), Error);
    CHECK_THROWS_AS(cache.blob("o/n", "x.incomplete"), Error);
}
