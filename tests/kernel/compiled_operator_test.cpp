// What packages say of the operators that they compute, and what hostile ones say.

#include "kernel/compiled_operator.h"

#include "archive/json_reader.h"
#include "kernel/build.h"
#include "twinkle/error.h"

#include "base/temp_folder.h"
#include "catch.h"
#include "stored_zip.h"

using namespace twinkle;
using namespace twinkle::kernel;

namespace {

const std::string in_model = "pkg/data/aotinductor/model/";
const std::string norm = R"({"operator": "norm(Tensor x, Tensor weight, float eps) -> Tensor",
    "attributes": ["weight", "eps"], "constants": {"eps": 1e-06},
    "inputs": [{"dtype": "float32", "sizes": ["rows", 64]}, {"dtype": "float32", "sizes": [64]}],
    "sizes": {"rows": [1, 100]}})";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

std::string refusal(const std::string& from, const std::string& to) {
    try {
        parse_compiled_operator(replaced(norm, from, to));
    } catch (const archive::InvalidJson& invalid) {
        return invalid.what();
    }
    return "";
}

tests::Records package(const std::string& said = norm, const std::string& device = "cpu") {
    const base::Json metadata = {
        {"AOTI_DEVICE_KEY", device}, {"AOTI_CPU_ISA", "AVX2"}, {"twinkle", said}};
    return {{in_model + "abc.wrapper.so", std::string(100, 'x')},
            {in_model + "abc.wrapper_metadata.json", metadata.dump()}};
}

std::string package_refusal(const tests::Records& records) {
    const test::TempFolder folder;
    try {
        read_operator_package(folder.write("norm.pt2", tests::zip_of(records)), "norm.pt2");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::malformed);
        return error.details().why;
    }
    return "";
}

}  // namespace

TEST_CASE("what a package says of its operator", "[compiled]") {
    const CompiledOperator op = parse_compiled_operator(norm);
    CHECK(op.name == "norm");
    CHECK(op.schema == "norm(Tensor x, Tensor weight, float eps) -> Tensor");
    REQUIRE(op.parameters.size() == 3);
    CHECK(op.parameters[0].dtype == "float32");
    REQUIRE(op.parameters[0].sizes.size() == 2);
    CHECK(op.parameters[0].sizes[0].name == "rows");
    CHECK(op.parameters[0].sizes[0].most == 100);
    CHECK(op.parameters[0].sizes[1].least == 64);
    CHECK(std::get<double>(*op.parameters[2].constant) == 1e-6);
    CHECK(op.attributes == std::vector<std::string>{"weight", "eps"});
    CHECK(compiled_for_text(op) == "float32[rows: 1 to 100, 64], float32[64], eps = 1e-06");
    CHECK(parse_compiled_operator(replaced(norm, "-> Tensor", "-> (Tensor, Tensor)")).results == 2);
}

TEST_CASE("what contradicts itself, or no package can be, is refused", "[compiled]") {
    CHECK_THAT(refusal("norm(Tensor x", "norm(Tensor(a!) x"), ContainsSubstring("no schema"));
    CHECK_THAT(refusal("norm(", "aten::norm("), ContainsSubstring("no schema"));
    CHECK_THAT(refusal("norm(", "norm.out("), ContainsSubstring("no schema"));
    CHECK_THAT(refusal("norm(Tensor x", "norm(Tensor? x"), ContainsSubstring("Tensor? x"));
    CHECK_THAT(refusal("norm(Tensor x", "norm(Tensor[] x"), ContainsSubstring("Tensor[] x"));
    CHECK_THAT(refusal("-> Tensor", "-> int"), ContainsSubstring("returns int"));
    CHECK_THAT(refusal("float eps", "float eps=1.0"), ContainsSubstring("eps=1.0"));
    CHECK_THAT(refusal("Tensor weight", "Tensor x"), ContainsSubstring("two parameters x"));
    CHECK_THAT(refusal("(Tensor x", "(float x"), ContainsSubstring("no tensor"));
    CHECK_THAT(refusal("\"eps\": 1e-06", "\"other\": 1"), ContainsSubstring("no value of eps"));
    CHECK_THAT(refusal("1e-06", "true"), ContainsSubstring("number"));
    CHECK_THAT(refusal("{\"dtype\": \"float32\", \"sizes\": [64]}",
                       "{\"dtype\": \"float32\", \"sizes\": [64]}, 1"),
               ContainsSubstring("more entries"));
    CHECK_THAT(refusal(", {\"dtype\": \"float32\", \"sizes\": [64]}", ""),
               ContainsSubstring("fewer entries"));
    CHECK_THAT(refusal("float32", "complex64"), ContainsSubstring("complex64"));
    CHECK_THAT(refusal("[1, 100]", "[5, 1]"), ContainsSubstring("no range"));
    CHECK_THAT(refusal("[1, 100]", "[1]"), ContainsSubstring("no range"));
    CHECK_THAT(refusal("[1, 100]", "[-1, 100]"), ContainsSubstring("no range"));
    CHECK_THAT(refusal("[\"rows\", 64]", "[\"columns\", 64]"), ContainsSubstring("columns"));
    CHECK_THAT(refusal("[\"rows\", 64]", "[-2, 64]"), ContainsSubstring("negative"));
    CHECK_THAT(refusal("[\"weight\", \"eps\"]", "[\"bias\"]"), ContainsSubstring("bias"));
    CHECK_THAT(refusal("{\"operator\"", "[\"operator\""), ContainsSubstring("no JSON"));
}

TEST_CASE("a package that needs files beside its library is no kernel", "[compiled]") {
    CHECK(package_refusal(package()).empty());
    const auto with = [](const std::string& record, const std::string& text) {
        auto records = package();
        records.emplace_back(record, text);
        return package_refusal(records);
    };
    CHECK_THAT(with(in_model + "k.cubin", "x"), ContainsSubstring("GPU code"));
    CHECK_THAT(with("pkg/data/weights/w", "x"), ContainsSubstring("weights"));
    CHECK_THAT(with(in_model + "b.wrapper.so", "x"), ContainsSubstring("2 libraries"));
    CHECK_THAT(with("pkg/data/aotinductor/other/b.wrapper.so", "x"), ContainsSubstring("2 models"));
    CHECK_THAT(
        with(in_model + "abc.wrapper.json", R"({"nodes": [{"node": {"target": "mylib::scale"}}]})"),
        ContainsSubstring("mylib::scale"));
    CHECK_THAT(package_refusal(package(norm, "xpu")), ContainsSubstring("xpu"));
    CHECK_THAT(package_refusal(package("{")), ContainsSubstring("no JSON"));
}

TEST_CASE("what says nothing of an operator is no kernel, and no error", "[compiled]") {
    const test::TempFolder folder;
    auto records = package();
    records[1].second = R"({"AOTI_DEVICE_KEY": "cpu"})";
    CHECK_FALSE(read_package_file(folder.write("plain.pt2", tests::zip_of(records))));
    CHECK_FALSE(read_package_file(folder.write("text.pt2", "no archive")));
}

TEST_CASE("names that are none in Python are refused", "[compiled]") {
    const test::TempFolder folder;
    for (const auto& [from, to] :
         {std::pair("norm(", "class("), std::pair("Tensor x", "Tensor lambda"),
          std::pair("Tensor x", "Tensor self")}) {
        const auto file =
            folder.write("norm.pt2", tests::zip_of(package(replaced(norm, from, to))));
        CHECK_THROWS_WITH(read_package_file(file), ContainsSubstring("no layer in Python"));
    }
}

TEST_CASE("a package by itself is a build with a layer", "[compiled]") {
    const test::TempFolder folder;
    const auto build = read_package_file(folder.write("norm.pt2", tests::zip_of(package())));
    REQUIRE(build);
    const std::string space = package_namespace(build->files.front().sha256);
    CHECK(space.size() == 20);
    CHECK(build->sources.at("_ops.py").find("torch.ops." + space + "\n") != std::string::npos);
    const LayerList layers = read_layers(build->sources);
    REQUIRE(layers.layers.size() == 1);
    const LayerSource& layer = layers.layers.front();
    CHECK(layer.problems.empty());
    CHECK(layer.name == "norm");
    CHECK_FALSE(layer.has_backward);
    CHECK(layer.host_attributes == std::vector<std::string>{"eps", "weight"});
    REQUIRE(layer.parameters.size() == 1);
    CHECK(layer.parameters.front().name == "x");
}
