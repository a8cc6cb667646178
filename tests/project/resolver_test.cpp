#include "project/resolver.h"

#include "base/json.h"
#include "catch.h"
#include "project/world.h"

using namespace twinkle;
using namespace twinkle::project;
using test::error_of;
using test::World;
namespace fs = std::filesystem;

namespace {

const std::string& pack = test::bundled_pack;

bool mentions(const Error& error, std::string_view words) {
    INFO(error.what());
    return std::string(error.what()).find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("without a manifest: the bundled pack with its presets") {
    World world;
    const Resolution resolution = project::resolve(world.options);
    CHECK_FALSE(resolution.manifest);
    const Mapping& mapping = resolution.mapping;
    REQUIRE(mapping.kernels.size() == 1);
    CHECK(mapping.kernels[0].name == "twinkle-pack");
    CHECK(mapping.kernels[0].variant == "torch-cpu");
    CHECK(mapping.kernels[0].device == "cpu");
    CHECK(mapping.kernels[0].path == world.folder / pack);
    CHECK(mapping.kernels[0].files.size() == 3);
    REQUIRE(mapping.layers.size() == 2);
    REQUIRE(mapping.layers[0].candidates.size() == 1);
    CHECK(mapping.layers[0].candidates[0].layer == "Norm");
    CHECK(mapping.layers[0].candidates[0].mode == "inference");
    CHECK_FALSE(mapping.layers[0].candidates[0].has_backward);
    CHECK(mapping.layers[1].when_submodule.contains("a"));
    REQUIRE(mapping.patterns.size() == 1);
    CHECK(mapping.patterns[0].name == "twice");
    CHECK(mapping.target.at("torch") == "2.13");
    CHECK(mapping.decisions.size() == 4);
    const std::string json = mapping.to_json();
    CHECK(Mapping::parse(json, "/", "m").to_json() == json);
    CHECK(project::resolve(world.options).mapping.to_json() == json);
}

TEST_CASE("own classes stand beside those of the preset; those left out come from it") {
    World world;
    const Mapping mapping = world
                                .resolve(
                                    "presets = [\"transformers\"]\n"
                                    "[layers.Norm]\nclasses = [\"mine.Norm\"]\n"
                                    "mode = \"inference\"\n"
                                    "[layers.Gate]\nmode = \"compile\"\n")
                                .mapping;
    REQUIRE(mapping.layers.size() == 3);
    CHECK(mapping.layers[0].classes == std::vector<std::string>{"mine.Norm"});
    CHECK(mapping.layers[1].classes == std::vector<std::string>{"t.Gate"});
    REQUIRE(mapping.layers[1].candidates.size() == 2);  // the preset's own is the second
    CHECK(mapping.layers[1].candidates[0].mode == "inference+compile");
    CHECK(mapping.layers[1].candidates[1].mode == "fallback");
}

TEST_CASE("local kernels: repositories, builds, plain packages") {
    World world;
    test::write_build(world.folder, "project/k/build/torch-cuda", "a-norm", "cuda");
    test::write_build(world.folder, "project/k/build/torch-universal", "a-norm", "cpu");
    world.folder.write("project/plain/mine/__init__.py", "");
    world.folder.write("project/plain/mine/layers.py", test::norm_layers);
    world.options.target = "torch=2.13,backend=cu130,arch=9.0";
    const Mapping mapping = world
                                .resolve(
                                    "[kernels]\nown = { path = \"k\" }\n"
                                    "[layers.Norm]\nrepo_path = \"k\"\nclasses = [\"a.N\"]\n"
                                    "[layers.Gate]\nrepo_path = \"plain\"\n"
                                    "package_name = \"mine\"\nclasses = [\"a.G\"]\n")
                                .mapping;
    REQUIRE(mapping.kernels.size() == 3);
    CHECK(mapping.kernels[0].device == "cpu");
    CHECK(mapping.kernels[0].variant == "torch-universal");
    CHECK(mapping.kernels[1].device == "cuda");
    CHECK(mapping.kernels[1].variant == "torch-cuda");
    CHECK(mapping.kernels[2].name == "plain/mine");
    CHECK(mapping.kernels[2].device == "any");
    CHECK(mapping.kernels[2].variant.empty());
    CHECK(mapping.layers[0].candidates.size() == 2);
    CHECK(mapping.layers[0].candidates[0].kernel == "own");
    CHECK(mapping.layers[1].candidates[0].device == "any");
    CHECK(Mapping::parse(mapping.to_json(), "/", "m").kernels.size() == 3);
}

TEST_CASE("the build is that for the first GPU, and what others lack is said") {
    World world;
    test::write_build(world.folder, "project/k/build/torch-cuda", "a-norm", "cuda",
                      {"8.0", "9.0+PTX"});
    world.machine.nvidia = true;
    world.machine.driver = target::CudaDriver{
        {13, 0}, {{"NVIDIA H200", "9.0", 1}, {"Tesla T4", "7.5", 1}, {"NVIDIA B200", "10.0", 1}}};
    world.options.target.reset();
    const std::string manifest = "presets = []\n[kernels]\nown = { path = \"k\" }\n";
    const Resolution resolution = world.resolve(manifest);
    REQUIRE(resolution.mapping.kernels.size() == 1);
    CHECK(resolution.mapping.target.at("arch") == "9.0");
    REQUIRE(resolution.warnings.size() == 1);
    CHECK(resolution.warnings[0] ==
          "own has no code for GPU 1, Tesla T4 (7.5), only for 8.0, 9.0+PTX");

    std::swap(world.machine.driver->gpus[0], world.machine.driver->gpus[1]);
    const auto error = world.fails(manifest);
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::not_found);
    CHECK(mentions(*error, "it is built for 8.0, 9.0+PTX"));
    CHECK(mentions(*error, "7.5"));
}

TEST_CASE("kernels of the Python tool's cache resolve without the Hub") {
    World world;
    const std::string commit(40, 'c');
    const std::string repository = "hf/hub/kernels--o--norm/";
    test::write_build(world.folder, repository + "snapshots/" + commit + "/build/torch-cpu",
                      "a-norm", "cpu");
    world.folder.write(repository + "refs/v1", commit);
    world.folder.write(repository + "refs/v2", commit);
    const std::string layer = "[layers.Norm]\nrepo_id = \"o/norm\"\nclasses = [\"a.N\"]\n";
    for (const std::string& pin :
         {std::string("version = 2\n"), "revision = \"" + commit + "\"\n"}) {
        const Mapping mapping = world.resolve(layer + pin).mapping;
        REQUIRE(mapping.kernels.size() == 1);
        CHECK(mapping.kernels[0].commit == commit);
        CHECK(mapping.kernels[0].repo_id == "o/norm");
    }
    const Resolution pinned = world.resolve("[kernels]\n\"o/norm\" = 2\n" + layer);
    CHECK(pinned.mapping.kernels[0].name == "o/norm@2");

    const auto missing = world.fails(layer + "version = 3\n");
    REQUIRE(missing);
    CHECK(missing->code() == ErrorCode::not_found);
    CHECK(mentions(*missing, "not in the cache"));
    CHECK(world.fails(layer)->code() == ErrorCode::not_found);
    CHECK(world.fails("[kernels]\n\"o/norm\" = [1, 2]\n" + layer)->code() == ErrorCode::malformed);

    world.machine.variables["LOCAL_KERNELS"] =
        "o/norm=" + (world.folder / "pack/twinkle-pack").string();
    CHECK(world.resolve(layer + "version = 3\n").mapping.kernels[0].commit.empty());
}

TEST_CASE("what cannot be is an error that names it") {
    World world;
    const std::string norm = "[layers.Norm]\nclasses = [\"a.N\"]\n";

    const auto layer = world.fails("[layers.Nrom]\nclasses = [\"a.N\"]\n");
    CHECK(layer->code() == ErrorCode::not_found);
    CHECK(mentions(*layer, "did you mean \"Norm\"?"));

    const auto classes = world.fails("[layers.Nrm]\nlayer_name = \"Norm\"\n");
    CHECK(classes->code() == ErrorCode::malformed);
    CHECK(mentions(*classes, "did you mean \"Norm\"?"));

    const auto training = world.fails(norm + "mode = \"train\"\n");
    CHECK(training->code() == ErrorCode::malformed);
    CHECK(mentions(*training, "layers.py:5"));
    CHECK(mentions(*training, "has_backward"));
    CHECK(mentions(*world.fails(norm + "mode = \"compile\"\n"), "can_torch_compile"));

    world.options.target = "torch=2.13,backend=cpu,os=darwin";
    CHECK_FALSE(world.fails(norm));  // Python only: every system
    world.folder.write("project/k/build/torch210-cpu-x86_64-linux/metadata.json", "x");
    const auto variant = world.fails("[layers.Norm]\nrepo_path = \"k\"\nclasses = [\"a\"]\n");
    CHECK(variant->code() == ErrorCode::not_found);
    CHECK(mentions(*variant, "it is for linux, the target is darwin"));

    CHECK(world.fails("[layers.Norm]\nrepo_path = \"none\"\nclasses = [\"a\"]\n")->code() ==
          ErrorCode::not_found);
    world.options.target = "nowhere";
    CHECK(world.fails(norm)->code() == ErrorCode::not_found);
}

TEST_CASE("a layer that breaks the rules is refused with its place") {
    World world;
    world.folder.write("project/k/__init__.py", "");
    world.folder.write("project/k/layers.py",
                       "from torch import nn\n\nclass Norm(nn.Module):\n"
                       "    def __init__(self):\n        pass\n"
                       "    def forward(self, x):\n        return x\n");
    const auto error = world.fails("[layers.Norm]\nrepo_path = \"k\"\nclasses = [\"a\"]\n");
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::refused);
    CHECK(mentions(*error, "layers.py:4"));
}

TEST_CASE("a changed file is refused") {
    World world;
    world.folder.write(pack + "/layers.py", std::string(test::norm_layers) + "\n");
    const auto error = error_of([&] { project::resolve(world.options); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::verification);
}

TEST_CASE("a device that the target has not is a decision, with strict an error") {
    World world;
    const std::string text = "[layers.Norm]\nclasses = [\"a.N\"]\ndevice = \"cuda\"\n";
    const Mapping mapping = world.resolve(text).mapping;
    REQUIRE(mapping.decisions.size() == 1);
    CHECK_FALSE(mapping.decisions[0].chosen);
    CHECK(mapping.decisions[0].because.find("no such device") != std::string::npos);
    CHECK(mapping.layers[0].candidates.empty());
    world.options.strict = true;
    CHECK(world.fails(text)->code() == ErrorCode::not_found);
}

TEST_CASE("a GPU without a build is told of, with strict an error") {
    World world;
    const std::string layer = "[layers.Norm]\nclasses = [\"a.N\"]\n";
    CHECK(world.resolve(layer).warnings.empty());
    world.options.target = "torch=2.13,backend=cu130,arch=9.0";
    const auto warnings = world.resolve(layer).warnings;
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find("for cuda runs on the target") != std::string::npos);
    CHECK(world.resolve(layer + "device = \"cpu\"\n").warnings.empty());
    world.options.strict = true;
    CHECK(mentions(*world.fails(layer), "no build of twinkle-pack for cuda"));
    CHECK(world.resolve(layer + "device = \"cpu\"\n").mapping.layers[0].candidates.size() == 1);
    test::write_build(world.folder, "project/k/build/torch-cpu", "a-norm", "cpu");
    test::write_build(world.folder, "project/gpu/build/torch-cuda", "a-norm", "cuda");
    CHECK(world.resolve(layer + "repo_path = \"gpu\"\n").warnings.empty());
    CHECK(mentions(*world.fails("[functions.add]\ntarget_module = \"m\"\nrepo_path = \"k\"\n"
                                "func_name = \"Norm\"\n"),
                   "no build of k for cuda"));
}

TEST_CASE("ranges of capability are for GPUs inside them") {
    World world;
    test::write_build(world.folder, "project/k/build/torch-cuda", "a-norm", "cuda");
    const std::string text =
        "[layers.Norm]\nrepo_path = \"k\"\nclasses = [\"a.N\"]\ncapability = \"80-89\"\n";
    world.options.target = "torch=2.13,backend=cu130,arch=8.6";
    const Mapping inside = world.resolve(text).mapping;
    REQUIRE(inside.layers[0].candidates.size() == 1);
    CHECK(inside.layers[0].candidates[0].capability == std::pair{80, 89});
    world.options.target = "torch=2.13,backend=cu130,arch=9.0";
    CHECK(world.resolve(text).mapping.layers[0].candidates.empty());
}

TEST_CASE("functions of a manifest become part of the mapping") {
    World world;
    test::write_build(world.folder, "project/k/build/torch-cuda", "a-norm", "cuda");
    const auto functions = [&](const std::string& keys) {
        return world.resolve("[functions.add]\ntarget_module = \"m\"\n" + keys).mapping.functions;
    };
    SECTION("an operator that the process may have") {
        const auto made = functions("func_impl = \"op:a::b\"\nmode = \"train\"\n");
        REQUIRE(made.size() == 1);
        CHECK(made[0].full_name() == "m.add");
        REQUIRE(made[0].candidates.size() == 1);
        CHECK(made[0].candidates[0].op == "a::b");
        CHECK(made[0].candidates[0].device == "any");
        CHECK(made[0].candidates[0].mode == "training");
    }
    SECTION("Python text, read here") {
        world.folder.write("project/fast.py", "def add(x):\n    return x\n");
        const auto made = functions("func_impl = \"fast.py:add\"\n");
        CHECK(made[0].candidates[0].source == "def add(x):\n    return x\n");
        CHECK(made[0].candidates[0].file == "fast.py");
        CHECK(made[0].candidates[0].function == "add");
    }
    SECTION("a device that the target has not") {
        CHECK(functions("func_impl = \"op:a::b\"\ndevice = \"mps\"\n")[0].candidates.empty());
        world.options.strict = true;
        CHECK(world
                  .fails("[functions.add]\ntarget_module = \"m\"\nfunc_impl = \"op:a::b\"\n"
                         "device = \"mps\"\n")
                  ->code() == ErrorCode::not_found);
    }
    SECTION("what is not there") {
        const auto code = [&](const std::string& keys) {
            return world.fails("[functions.add]\ntarget_module = \"m\"\n" + keys)->code();
        };
        CHECK(code("func_impl = \"fast.py:add\"\n") == ErrorCode::not_found);
        CHECK(code("func_impl = \"add\"\n") == ErrorCode::malformed);
        CHECK(code("func_impl = \"op:add\"\n") == ErrorCode::malformed);
        CHECK(code("func_impl = \"op:a::b\"\nrepo_path = \"k\"\n") == ErrorCode::malformed);
    }
}
