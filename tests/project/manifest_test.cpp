#include "project/manifest.h"

#include <random>

#include "base/temp_folder.h"
#include "base/throws.h"
#include "catch.h"

using namespace twinkle;
using namespace twinkle::project;
using test::error_of;

namespace {

struct Project {
    test::TempFolder folder;
    Manifest load(std::string_view text, const char* name = "twinkle.toml") {
        return load_manifest(folder.write(name, text), folder / "presets");
    }
    std::optional<Error> fails(std::string_view text, const char* name = "twinkle.toml") {
        return error_of([&] { load(text, name); });
    }
};

constexpr std::string_view everything = R"(
trust = ["acme/norm"]

[kernels]
"kernels-community/activation" = 1
"acme/norm" = { revision = "3f2c" }
"acme/old" = "0.1.0"
"acme/range" = ">=0.1,<0.3"
"acme/both" = [1, 2]
my_kernels = { path = "kernels/my_kernels" }

[layers.SiluAndMul]
repo_id = "kernels-community/activation"
version = 1
layer_name = "Silu"
device = "cuda"
mode = "train"
capability = "80-90"
classes = ["vllm.layers.SiluAndMul"]
modules = ["model.layers.*.mlp.act"]
when = { variance_epsilon = 1e-6, n = 2, flag = true, kind = "x" }
when_submodule = { act_fn = ["torch.nn.SiLU"] }
attributes = { eps = 1e-5 }

[[layers.RMSNorm]]
repo_path = "kernels"
package_name = "my_kernels"
device = "cpu"
[[layers.RMSNorm]]
device = "metal"
mode = "compile"

[functions.add]
target_module = "my_pkg.math_ops"
func_impl = "fast_math.py:fast_add"
device = "cuda"
mode = "inference"

[patterns.gate]
pattern = ["formulas.py:gate", "formulas.py:other_form"]
func_impl = "op:twinkle_pack::silu_mul"
device = "cpu"

[[patterns.norm]]
pattern = "norms/formulas.py:norm"
repo_id = "o/norms"
version = 1

[[patterns.norm]]
func_impl = "op:my_pack::norm"

[targets.prod]
torch = "2.11"
backend = "cu130"
arch = "9.0"
cxx11 = true
)";

}  // namespace

TEST_CASE("everything that a manifest may say") {
    Project project;
    const Manifest manifest = project.load(everything);
    REQUIRE(manifest.kernels.size() == 7);
    CHECK(manifest.kernels[0].pin.version == 1);
    CHECK(manifest.kernels[1].pin.revision == "3f2c");
    CHECK(manifest.kernels[2].pin.specifier == "0.1.0");
    CHECK(manifest.kernels[4].pin.version == 1);
    CHECK(manifest.kernels[5].pin.version == 2);
    CHECK(manifest.kernels[6].path == project.folder / "kernels/my_kernels");
    REQUIRE(manifest.layers.size() == 3);
    const LayerBinding& silu = manifest.layers[0];
    CHECK(silu.layer_name == "Silu");
    CHECK(silu.mode == "training");
    CHECK(silu.capability == std::pair{80, 90});
    CHECK(std::get<double>(silu.when.at("variance_epsilon")) == 1e-6);
    CHECK(std::get<std::int64_t>(silu.when.at("n")) == 2);
    CHECK(std::get<bool>(silu.when.at("flag")));
    CHECK(silu.when_submodule.at("act_fn").size() == 1);
    CHECK(silu.where.find("twinkle.toml:12:") != std::string::npos);
    CHECK(manifest.layers[1].layer_name == "RMSNorm");
    CHECK(manifest.layers[1].mode == "fallback");
    CHECK(manifest.layers[2].device == "mps");
    CHECK(manifest.layers[2].mode == "inference+compile");
    CHECK(manifest.functions[0].target_module == "my_pkg.math_ops");
    CHECK(manifest.functions[0].source_file == project.folder / "fast_math.py");
    CHECK(manifest.functions[0].source_function == "fast_add");
    REQUIRE(manifest.patterns.size() == 3);
    CHECK(manifest.patterns[0].formula_file == project.folder / "formulas.py");
    CHECK(manifest.patterns[0].formulas == std::vector<std::string>{"gate", "other_form"});
    CHECK(manifest.patterns[0].replacement.op == "twinkle_pack::silu_mul");
    CHECK(manifest.patterns[0].replacement.name == "gate");
    CHECK(manifest.patterns[1].formula_file == project.folder / "norms/formulas.py");
    CHECK(manifest.patterns[2].formula_file == manifest.patterns[1].formula_file);
    CHECK(manifest.patterns[2].formulas == manifest.patterns[1].formulas);
    CHECK(manifest.patterns[1].replacement.pin.version == 1);
    CHECK_FALSE(manifest.patterns[1].preset);
    CHECK(manifest.targets.at("prod").values.at("cxx11") == "1");
    CHECK(manifest.trust == std::vector<std::string>{"acme/norm"});
}

TEST_CASE("pyproject.toml has the same in its tables, and other people's too") {
    Project project;
    const Manifest manifest = project.load(R"(
[project]
name = "x"
[tool.kernels.dependencies]
"kernels-community/activation" = 1
[tool.twinkle.layers.A]
classes = ["a.A"]
[tool.other]
y = 2026-01-01
)",
                                           "pyproject.toml");
    CHECK(manifest.kernels.size() == 1);
    CHECK(manifest.layers.size() == 1);
}

TEST_CASE("includes and presets add what the manifest does not say itself") {
    Project project;
    project.folder.write("more/kernels.json", R"({"layers": {
        "A": {"repo_id": "o/n", "version": 1, "classes": ["a.A"]},
        "B": {"repo_path": "local", "package_name": "p", "classes": ["b.B"]}},
        "targets": {"prod": {"torch": "2.9"}}})");
    project.folder.write("presets/t.toml", "[layers.A]\nclasses = [\"t.A\"]\n");
    const Manifest manifest = project.load(
        "include = [\"more/kernels.json\"]\npresets = [\"t\"]\n"
        "[layers.A]\nrepo_id = \"o/mine\"\nversion = 2\nclasses = [\"a.A\"]\n"
        "[targets.prod]\ntorch = \"2.13\"\n");
    REQUIRE(manifest.layers.size() == 3);
    CHECK(manifest.layers[0].repo_id == "o/mine");
    CHECK(manifest.layers[1].repo_path == project.folder / "more/local");
    CHECK(manifest.layers[2].classes == std::vector<std::string>{"t.A"});
    CHECK(manifest.targets.at("prod").values.at("torch") == "2.13");

    CHECK(project.fails("presets = [\"x\"]")->code() == ErrorCode::not_found);
    CHECK(project.fails("include = [\"none.toml\"]")->code() == ErrorCode::not_found);
    CHECK(project.fails("include = [\"twinkle.toml\"]")->code() == ErrorCode::malformed);
}

TEST_CASE("every error has file, line and column, and the nearest known key") {
    Project project;
    const auto expect = [&](std::string_view text, std::string_view where, std::string_view words) {
        const auto error = project.fails(text);
        INFO(text);
        REQUIRE(error);
        INFO(error->what());
        CHECK(error->code() == ErrorCode::malformed);
        CHECK(error->details().where.find("twinkle.toml:" + std::string(where)) !=
              std::string::npos);
        CHECK(std::string(error->what()).find(words) != std::string::npos);
    };
    expect("layer = 1", "1:1", "did you mean \"layers\"?");
    expect("[layers.A]\nclases = []", "2:1", "did you mean \"classes\"?");
    expect("[layers.A]\ndevice = \"gpu\"", "2:10", "devices: cpu, cuda");
    expect("[layers.A]\nmode = \"fast\"", "2:8", "no mode");
    expect("[layers.A]\ncapability = \"90-80\"", "2:14", "90 is more than 80");
    expect("[layers.A]\ncapability = \"x\"", "2:14", "a range");
    expect("[layers.A]\ndevice = \"cpu\"\ncapability = \"80\"", "3:14", "for cuda and rocm");
    expect("[layers.A]\nrepo_id = \"o/n\"\nversion = 1\nrevision = \"main\"", "4:12", "both given");
    expect("[layers.A]\nversion = 1", "1:1", "belong to a \"repo_id\"");
    expect("[layers.A]\nrepo_id = \"a/b\"\nrepo_path = \"c\"", "3:13", "both given");
    expect("[layers.A]\nrepo_id = \"../b\"", "2:11", "not org/name");
    expect("[layers.A]\nrepo_id = \"o/n\"\nrevision = \"a/../b\"", "3:12", "no name of a branch");
    expect("[layers.A]\npackage_name = \"x\"", "2:16", "repo_path");
    expect("[layers.A]\nclasses = []", "2:11", "nothing would be bound");
    expect("[layers.A]\nclasses = \"a.A\"", "2:11", "a string, not a list");
    expect("[layers.A]\nwhen = { x = [1] }", "2:14", "a list, not");
    expect("[layers.A]\nwhen = { x = nan }", "2:14", "not");
    expect("[layers]\nA = 1", "2:5", "where a table is needed");
    expect("[[layers.A]]\nclasses=[\"a\"]\n[[layers.A]]\nclasses=[\"a\"]", "3:1",
           "same kernel twice");
    expect("[kernels]\nname = 1", "2:8", "not org/name");
    expect("[kernels]\n\"o/n\" = []", "2:9", "empty");
    expect("[kernels]\n\"o/n\" = [1, 1]", "2:9", "twice");
    expect("[kernels]\n\"o/n\" = { version = 1, pth = 2 }", "2:24", "did you mean \"path\"?");
    expect("[kernels]\n\"o/n\" = { }", "2:9", "is needed");
    expect("[kernels]\n\"o/n\" = true", "2:9", "a version is");
    expect("[functions.f]\nfunc_impl = \"x\"", "1:1", "\"target_module\" is missing");
    expect("[functions.f]\ntarget_module = \"m\"", "1:1", "exactly one");
    expect("[functions.f]\ntarget_module = \"\"\nfunc_name = \"g\"", "2:17", "is empty");
    expect(
        "[[functions.f]]\ntarget_module = \"m\"\nfunc_name = \"g\"\n"
        "[[functions.f]]\ntarget_module = \"m\"\nfunc_name = \"g\"",
        "4:1", "same kernel twice");
    for (const char* text :
         {"f", "f.py", "f.py:", "f.py:1a", "op:f", "op:a::b::c", "op:::f", "f.txt:f"}) {
        expect("[functions.f]\ntarget_module = \"m\"\nfunc_impl = \"" + std::string(text) + "\"",
               "3:13", "\"op:namespace::name\"");
    }
    expect("[targets.t]\ntorch = 2.10", "2:9", "quotation marks");
    expect("[targets.t]\ntorhc = \"2.10\"", "2:1", "did you mean \"torch\"?");
    expect("[targets.here]\n", "1:1", "another name");
    expect("a = ", "1:5", "not valid TOML");
    expect("[layers.A]\n[layers.A]", "2:1", "not valid TOML");
    expect("a = 1\na = 2", "2:5", "not valid TOML");
}

TEST_CASE("formulas that many tables have in common are counted in each") {
    Project project;
    std::string text = "[[patterns.a]]\nfunc_impl = \"f.py:g\"\npattern = [";
    for (int i = 0; i < 100; ++i) {
        text += "\"f.py:f" + std::to_string(i) + "\", ";
    }
    text += "]\n";
    for (int i = 1; i < 100; ++i) {
        text += "[[patterns.a]]\nfunc_impl = \"f.py:g\"\n";
    }
    CHECK(project.load(text).patterns.size() == 100);
    const auto error = project.fails(text + "[[patterns.a]]\nfunc_impl = \"f.py:g\"\n");
    REQUIRE(error);
    CHECK(std::string(error->what()).find("more than 10000 formulas") != std::string::npos);
}

TEST_CASE("layers that one class is bound to are told apart by conditions") {
    Project project;
    const auto manifest = [](const std::string& first, const std::string& second) {
        return "[layers.A]\nclasses = [\"m.*Norm\", \"m.X\"]\n" + first +
               "\n[layers.B]\nclasses = [\"m.RMSNorm\"]\n" + second;
    };
    const std::string silu = "when_submodule = { act = [\"nn.SiLU\"] }";
    const std::vector<std::pair<std::string, std::string>> apart = {
        {"when = { n = 1 }", ""},
        {"when = { n = 1 }", "when = { n = 2 }"},
        {silu, "when_submodule = { act = [\"nn.GELU\"] }"},
        {silu, "when_submodule = { act = [\"nn.SiLU\", \"nn.GELU\"] }"},
        {"modules = [\"a.*\"]", "modules = [\"b.*\"]"},
        {"device = \"cuda\"", "device = \"cpu\""},
        {"mode = \"inference\"", "mode = \"training\""},
    };
    for (const auto& [first, second] : apart) {
        INFO(first << " and " << second);
        CHECK(project.load(manifest(first, second)).layers.size() == 2);
    }
    const std::vector<std::pair<std::string, std::string>> alike = {
        {"", ""},
        {"", "when = { n = 1 }"},
        {"when = { n = 1 }", "when = { n = 1 }"},
        {"when_submodule = { act = [\"nn.SiLU\", \"nn.GELU\"] }", silu},
        {"modules = [\"a.*\"]", "modules = [\"a.*\"]"},
        {"device = \"cpu\"", "device = \"cpu\"\nwhen = { n = 1 }"},
    };
    for (const auto& [first, second] : alike) {
        INFO(first << " and " << second);
        const auto error = project.fails(manifest(first, second));
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::malformed);
        CHECK(error->details().what.find("m.RMSNorm, and nothing tells them apart") !=
              std::string::npos);
        CHECK(error->details().why.find("\"A\" at ") != std::string::npos);
    }
    // This document's binding overrides that of an included one.
    project.folder.write("more.toml", "[layers.B]\nclasses = [\"m.RMSNorm\"]\n");
    CHECK(project.load("include = [\"more.toml\"]\n[layers.A]\nclasses = [\"m.RMSNorm\"]\n")
              .layers.size() == 2);
}

TEST_CASE("JSON manifests are as strict") {
    Project project;
    const auto error = project.fails("{\"layers\": {\"A\": {\n \"modes\": 1}}}", "m.json");
    REQUIRE(error);
    CHECK(error->details().where.find("m.json:2:2") != std::string::npos);
    CHECK(project.fails("{\"layers\": {}, \"layers\": {}}", "m.json"));
}

TEST_CASE("cut and changed manifests are read or refused, never a crash") {
    Project project;
    std::mt19937 random(11);
    for (int i = 0; i < 400; ++i) {
        std::string text(everything);
        if (i % 2 == 0) {
            text.resize(random() % text.size());
        }
        for (int k = 0; k < i % 5; ++k) {
            text[random() % text.size()] = static_cast<char>(random());
        }
        if (const auto error = project.fails(text)) {
            CHECK(error->code() == ErrorCode::malformed);
        }
    }
    CHECK(project.fails("a = " + std::string(100000, '[')));
    CHECK(project.fails(std::string(5u << 20, '#')));
}
