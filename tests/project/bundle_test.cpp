#include "project/bundle.h"

#include "catch.h"
#include "kernel/build.h"
#include "project/world.h"

using namespace twinkle;
using namespace twinkle::project;
using test::error_of;
using test::World;
namespace fs = std::filesystem;

TEST_CASE("a bundle is whole, and loads wherever it is put") {
    World world;
    const std::string commit(40, 'c');
    const std::string build = world.snapshot("o--norm", commit) + "/build/torch-cpu";
    test::write_build(world.folder, build, "a-norm", "cpu");
    world.folder.write(world.snapshot("o--norm", commit) + "/build/torch-cuda/metadata.json", "{}");
    world.add_ref("o--norm", "v1", commit);
    world.folder.write("project/plain/__init__.py", "");
    world.folder.write("project/plain/sub/x.py", "x = 1\n");
    const Mapping mapping =
        world.resolve("[kernels]\n\"o/norm\" = 1\n\"a b\" = { path = \"plain\" }\n").mapping;
    const fs::path folder = world.folder / "new/bundle";
    write_bundle(mapping, folder);
    fs::rename(folder, world.folder / "moved");
    fs::remove_all(world.folder / "hf");
    fs::remove_all(world.folder / "project");
    const Mapping loaded = Mapping::load(world.folder / "moved/twinkle.map.json");
    REQUIRE(loaded.kernels.size() == mapping.kernels.size());
    for (std::size_t i = 0; i < loaded.kernels.size(); ++i) {
        CHECK(loaded.kernels[i].build_id() == mapping.kernels[i].build_id());
        CHECK(kernel::read_build(loaded.kernels[i].path).files.size() ==
              mapping.kernels[i].files.size());
    }
    CHECK(loaded.kernels[0].path == world.folder / "moved/kernels/o--norm@1/build/torch-cpu");
    CHECK_FALSE(fs::exists(world.folder / "moved/kernels/o--norm@1/build/torch-cuda"));
    CHECK(fs::is_empty(world.folder / "new"));
    const auto written = world.folder.read("moved/twinkle.map.json");
    CHECK(written.find(world.folder.path().string()) == std::string::npos);
}

TEST_CASE("an older bundle is replaced, any other folder is not") {
    World world;
    const Mapping mapping = project::resolve(world.options).mapping;
    const fs::path folder = world.folder / "out";
    write_bundle(mapping, folder);
    world.folder.write("out/kernels/old/x", "x");
    write_bundle(mapping, folder);
    CHECK_FALSE(fs::exists(folder / "kernels/old"));
    fs::create_directories(world.folder / "void");
    write_bundle(mapping, (world.folder / "void/").string());
    CHECK(fs::exists(world.folder / "void/twinkle.map.json"));

    world.folder.write("out/mine.txt", "x");
    world.folder.write("file", "x");
    fs::create_directory_symlink(world.folder / "void", world.folder / "link");
    for (const char* name : {"out", "file", "link", "project", "pack"}) {
        fs::create_directories(world.folder / "project/src");
        const auto error = error_of([&] { write_bundle(mapping, world.folder / name); });
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::refused);
    }
    CHECK(world.folder.read("out/mine.txt") == "x");
}

TEST_CASE("a file that changes after it was resolved leaves no bundle") {
    World world;
    const Mapping mapping = project::resolve(world.options).mapping;
    world.folder.write(test::bundled_pack + "/layers.py", "changed");
    fs::create_directories(world.folder / "b");
    const auto error = error_of([&] { write_bundle(mapping, world.folder / "b/bundle"); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::verification);
    CHECK(fs::is_empty(world.folder / "b"));
    const std::atomic<bool> stop = true;
    const auto stopped = error_of([&] { write_bundle(mapping, world.folder / "b/bundle", &stop); });
    CHECK(stopped->code() == ErrorCode::interrupted);
    CHECK(fs::is_empty(world.folder / "b"));
}
