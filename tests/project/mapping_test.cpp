#include "twinkle/mapping.h"

#include <random>

#include "base/json.h"
#include "base/sha256.h"
#include "base/temp_folder.h"
#include "base/throws.h"
#include "catch.h"

using namespace twinkle;
using base::Json;
using test::error_of;

namespace {

const std::string sha(64, 'a');

Mapping sample() {
    Mapping mapping;
    mapping.target = {{"torch", "2.13"}, {"backend", "cpu"}};
    MappedKernel kernel;
    kernel.name = "pack";
    kernel.variant = "torch-stable-abi210-cpu-x86_64-linux";
    kernel.device = "cpu";
    kernel.path = "/opt/pack/build/v";
    kernel.op_namespace = "pack_12ab";
    kernel.archs = {"9.0"};
    kernel.operators = {{"f", "f(Tensor x, float eps=1e-06) -> Tensor"}};
    kernel.files = {{"__init__.py", 3, sha}, {"lib/a.so", 1u << 31, sha}};
    MappedLayer layer;
    layer.kernel_name = "RMSNorm";
    layer.classes = {"a.b.C", "é.*"};
    layer.modules = {"model.*"};
    layer.when = {{"eps", 1e-6}, {"n", std::int64_t{1}}, {"one", 1.0}};
    layer.when_submodule = {{"act_fn", {"torch.nn.SiLU"}}};
    layer.attributes = {{"flag", true}, {"name", std::string("x")}};
    layer.candidates = {{"pack", "RMSNorm", "cpu", std::pair{80, 90}, "inference", false, true},
                        {"pack", "RMSNorm", "cpu", std::nullopt, "fallback", true, false}};
    mapping.functions = {{"my_pkg.math_ops", "add", {}}, {"m", "none", {}}};
    FunctionCandidate source;
    source.source = "def f(x):\n    return x  # é\n";
    source.file = "fast.py";
    source.function = "f";
    source.device = "any";
    source.mode = "fallback";
    FunctionCandidate op;
    op.kernel = "pack";
    op.op = "pack_12ab::f";
    op.device = "cpu";
    op.mode = "training";
    op.has_backward = false;
    mapping.functions[0].candidates = {source, op};
    mapping.patterns = {{"gate",
                         "def gate(x, y):\n    return x * y\n",
                         "formulas.py",
                         {"gate", "other_form"},
                         {source, op},
                         true}};
    mapping.kernels = {kernel};
    mapping.layers = {layer};
    mapping.decisions = {{"variant of pack", "v", "fits", {{"w", "too new"}}},
                         {"layer X", std::nullopt, "nothing fits", {}}};
    return mapping;
}

Mapping parse(const std::string& json) {
    return Mapping::parse(json, "/maps", "f.json");
}

// The sample with the value at `pointer` changed.
std::optional<Error> refused(const char* pointer, const Json& value) {
    Json document = Json::parse(sample().to_json());
    document[Json::json_pointer(pointer)] = value;
    return error_of([&] { parse(document.dump()); });
}

}  // namespace

TEST_CASE("a mapping survives being written and read") {
    const std::string json = sample().to_json();
    CHECK(json.back() == '\n');
    CHECK(parse(json).to_json() == json);
    CHECK(std::get<double>(parse(json).layers[0].when.at("one")) == 1.0);
    CHECK(std::get<std::int64_t>(parse(json).layers[0].when.at("n")) == 1);
    CHECK(parse(json).layers[0].candidates[0].capability == std::pair{80, 90});
    CHECK(parse(Mapping{}.to_json()).to_json() == Mapping{}.to_json());
}

TEST_CASE("random attributes survive the round trip") {
    std::mt19937_64 random(7);
    for (int i = 0; i < 200; ++i) {
        Mapping mapping = sample();
        const double value = std::ldexp(static_cast<double>(random()) - 9e18,
                                        static_cast<int>(random() % 200) - 100);
        std::string text;
        for (int k = 0; k < 8; ++k) {
            text += static_cast<char>(1 + random() % 126);
        }
        mapping.layers[0].when = {{text, value}, {text + "'", static_cast<std::int64_t>(random())}};
        const Mapping read = parse(mapping.to_json());
        CHECK(read.layers[0].when == mapping.layers[0].when);
    }
}

TEST_CASE("the build id is the hash of path, size and hash of every file") {
    const MappedKernel kernel = sample().kernels[0];
    using namespace std::string_literals;
    CHECK(kernel.build_id() == base::sha256_hex("__init__.py\0003\0"s + sha + "\nlib/a.so\0"s +
                                                "2147483648\0"s + sha + "\n"));
}

TEST_CASE("paths are made absolute and stay in the folder of the mapping") {
    Json document = Json::parse(sample().to_json());
    document["kernels"][0]["path"] = "kernels/pack";
    CHECK(parse(document.dump()).kernels[0].path == "/maps/kernels/pack");
    for (const char* path : {"../pack", "a/../../b", "", ".", "a//b", "a\\b", "..", "a/.."}) {
        INFO(path);
        CHECK(refused("/kernels/0/path", path));
        CHECK(refused("/kernels/0/files/0/path", path));
    }
    CHECK(refused("/kernels/0/files/0/path", "/etc/passwd"));
}

TEST_CASE("whatever is not as written by resolve is refused with its place") {
    const auto error = refused("/kernels/0/device", "gpu");
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::malformed);
    CHECK(error->details().where.starts_with("f.json:1:"));
    CHECK(refused("/schema", "twinkle.map/2"));
    CHECK(refused("/unknown", 1));
    CHECK(refused("/kernels/0/unknown", 1));
    CHECK(refused("/kernels/0/op_namespace", "a::b"));
    CHECK(refused("/kernels/0/files/0/sha256", std::string(64, 'A')));
    CHECK(refused("/kernels/0/files/0/size", -1));
    CHECK(refused("/kernels/0/files/1/path", "__init__.py"));
    CHECK(refused("/layers/0/candidates/0/kernel", "other"));
    CHECK(refused("/layers/0/candidates/0/mode", "train"));
    CHECK(refused("/layers/0/candidates/0/capability", Json::array({90, 80})));
    CHECK(refused("/layers/0/candidates/0/has_backward", "no"));
    CHECK(refused("/layers/0/when/x", Json::array()));
    CHECK(refused("/functions/0", Json::object()));
    CHECK(refused("/functions/0/candidates/0/mode", "never"));
    CHECK(refused("/functions/0/candidates/0/kernel", "pack"));
    CHECK(refused("/functions/0/candidates/0/operator", "a::b"));
    CHECK(refused("/functions/0/candidates/0/source", ""));
    CHECK(refused("/functions/0/candidates/1/kernel", "other"));
    CHECK(refused("/functions/0/candidates/1/operator", "a.b"));
    CHECK(refused("/functions/0/candidates/1/function", "f"));
    CHECK(refused("/patterns/0/name", "_2"));
    CHECK(refused("/patterns/0/name", "2nd"));
    CHECK(refused("/patterns/0/name", "a.b"));
    CHECK(refused("/patterns/0/formulas/0", "a b"));
    CHECK(refused("/patterns/0/candidates/1/kernel", "other"));
    Json twice = Json::parse(sample().to_json());
    twice["kernels"].push_back(twice["kernels"][0]);
    CHECK(error_of([&] { parse(twice.dump()); }));
}

TEST_CASE("every part left out or of another type is an error, never a crash") {
    const Json document = Json::parse(sample().to_json());
    const Json flat = document.flatten();
    for (const auto& [pointer, value] : flat.items()) {
        for (const Json& other :
             {Json(), Json(3.5), Json("x\n"), Json::array({1}), Json::object()}) {
            Json changed = document;
            changed[Json::json_pointer(pointer)] = other;
            try {
                parse(changed.dump());
            } catch (const Error& error) {
                CHECK(error.code() == ErrorCode::malformed);
            }
        }
    }
}

TEST_CASE("a mapping is loaded from a file; its folder is the base of its paths") {
    test::TempFolder folder;
    Mapping mapping = sample();
    mapping.kernels[0].path = "k";
    folder.write("map.json", mapping.to_json());
    CHECK(Mapping::load(folder / "map.json").kernels[0].path == folder / "k");
    CHECK(error_of([&] { Mapping::load(folder / "none"); })->code() == ErrorCode::not_found);
}
