#include "kernel/build_memory.h"

#include "base/throws.h"
#include "catch.h"
#include "kernel/kernel_folder.h"

#include <thread>

using namespace twinkle;
using namespace twinkle::kernel;
using test::TempFolder;

TEST_CASE("a build is read again only where a file has changed") {
    TempFolder folder;
    folder.write("k/__init__.py", "a = 1\n");
    folder.write("k/layers.py", "b = 1\n");
    BuildMemory memory(std::chrono::milliseconds(0));
    const auto source = [&](const std::string& file) {
        return memory.read(folder / "k").sources.at(file);
    };
    CHECK(source("__init__.py") == "a = 1\n");
    CHECK(source("layers.py") == "b = 1\n");
    CHECK(memory.reads() == 1);
    const auto time = std::filesystem::last_write_time(folder / "k/layers.py");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the clock of the file system
    folder.write("k/layers.py", "b = 2\n");                      // as long as it was, and as old
    std::filesystem::last_write_time(folder / "k/layers.py", time);
    CHECK(source("layers.py") == "b = 2\n");
    CHECK(memory.reads() == 2);
    folder.write("k/more.py", "");
    CHECK(source("more.py").empty());
    std::filesystem::remove(folder / "k/more.py");
    CHECK(!memory.read(folder / "k").sources.contains("more.py"));
    CHECK(memory.reads() == 4);
    std::filesystem::remove(folder / "k/__init__.py");
    CHECK(test::error_of([&] { memory.read(folder / "k"); }));
}

TEST_CASE("what has just been written is not remembered") {
    TempFolder folder;
    folder.write("k/__init__.py", "a = 1\n");
    BuildMemory memory(std::chrono::hours(1));
    memory.read(folder / "k");
    memory.read(folder / "k");
    CHECK(memory.reads() == 2);
}
