#include "project/find_project.h"

#include "base/temp_folder.h"
#include "base/throws.h"
#include "catch.h"

using namespace twinkle;
using project::find_project;
using test::error_of;

TEST_CASE("the nearest twinkle.toml, else the nearest pyproject.toml that is about kernels") {
    test::TempFolder folder;
    folder.write("twinkle.toml", "");
    folder.write("a/pyproject.toml", "[tool.kernels.dependencies]\n");
    folder.write("a/b/file", "");
    CHECK(find_project({}, folder / "a/b")->manifest == folder / "twinkle.toml");
    CHECK(find_project({}, folder.path())->folder == folder.path());
    std::filesystem::remove(folder / "twinkle.toml");
    CHECK(find_project({}, folder / "a/b")->manifest == folder / "a/pyproject.toml");
    folder.write("a/pyproject.toml", "[project]\nname = 'x'\n");
    CHECK_FALSE(find_project({}, folder / "a/b"));
}

TEST_CASE("a named folder must have a manifest; of two, twinkle.toml is used and it is said") {
    test::TempFolder folder;
    folder.write("a/pyproject.toml", "[tool.twinkle]\n");
    CHECK(find_project(folder / "a", ".")->manifest == folder / "a/pyproject.toml");
    CHECK(find_project(folder / "a/", ".")->note.empty());
    folder.write("a/twinkle.toml", "");
    CHECK(find_project(folder / "a", ".")->manifest == folder / "a/twinkle.toml");
    CHECK_FALSE(find_project(folder / "a", ".")->note.empty());
    CHECK(error_of([&] { find_project(folder.path(), "."); })->code() == ErrorCode::not_found);
    CHECK(error_of([&] { find_project(folder / "no", "."); })->code() == ErrorCode::not_found);
}
