#include "project/requests.h"

#include "base/temp_folder.h"
#include "base/throws.h"
#include "catch.h"

using namespace twinkle;
using namespace twinkle::project;

namespace {

Manifest load(const test::TempFolder& folder, std::string_view text) {
    return load_manifest(folder.write("p/twinkle.toml", text), folder / "presets");
}

std::vector<std::string> texts(const std::vector<HubRequest>& requests) {
    std::vector<std::string> result;
    for (const HubRequest& request : requests) {
        result.push_back(request.text() + (request.unpinned ? " unpinned" : ""));
    }
    return result;
}

}  // namespace

TEST_CASE("requests: [kernels], and what only layers and functions name") {
    const test::TempFolder folder;
    folder.write("p/more.json", R"({"kernels": {"a/json": 3}})");
    const Manifest manifest = load(folder, R"(
include = ["more.json"]
[kernels]
"b/norm" = [10, 2]
"a/old" = ">=0.1,<0.3"
"a/rev" = { revision = "dev" }
[layers.A]
repo_id = "b/norm"
version = 2
classes = ["x"]
[layers.B]
repo_id = "c/only"
revision = "abc"
classes = ["y"]
[layers.C]
repo_id = "c/nowhere"
classes = ["z"]
[layers.D]
repo_id = "a/old"
classes = ["w"]
[functions.f]
target_module = "m"
repo_id = "d/fun"
version = 1
)");
    CHECK(texts(hub_requests(manifest)) ==
          std::vector<std::string>{"a/json@3", "a/old@>=0.1,<0.3", "a/rev@dev", "b/norm@2",
                                   "b/norm@10", "c/nowhere@main unpinned", "c/only@abc",
                                   "d/fun@1"});
    const auto warnings = unpinned_warnings(hub_requests(manifest));
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find("c/nowhere has neither version nor revision") != std::string::npos);
    CHECK(hub_requests(manifest)[3].where.size() == 2);
}

TEST_CASE("requests: a layer must say which of several versions it means") {
    const test::TempFolder folder;
    const Manifest manifest = load(folder,
                                   "[kernels]\n\"a/b\" = [1, 2]\n[functions.f]\n"
                                   "target_module = \"m\"\nrepo_id = \"a/b\"\n");
    const auto error = test::error_of([&] { hub_requests(manifest); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::malformed);
    CHECK(error->details().what.find("the function \"f\"") == 0);
}

TEST_CASE("requests: local kernels by their key, else by their path") {
    const test::TempFolder folder;
    std::filesystem::create_directories(folder / "p/repo/pack");
    const Manifest manifest = load(folder, R"(
[kernels]
mine = { path = "k/mine" }
[layers.A]
repo_path = "k/mine"
classes = ["u"]
[layers.B]
repo_path = "repo"
package_name = "pack"
classes = ["v"]
)");
    const auto requests = local_requests(manifest);
    REQUIRE(requests.size() == 2);
    CHECK(requests[0].key == "mine");
    CHECK(requests[1].key == "repo/pack");
    CHECK(requests[1].path == folder / "p/repo/pack");
}
