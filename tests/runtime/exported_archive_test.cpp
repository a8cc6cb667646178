// Archives of torch.export that are not as an exporter writes them, and what happens to the file.

#include "archive/archive.h"
#include "runtime/exported/call_tree.h"
#include "runtime/exported/convert.h"
#include "runtime/exported/opened_file.h"
#include "runtime/exported/read_program.h"
#include "twinkle/error.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

// After LibTorch.
#include "catch.h"
#include "exported_program.h"
#include "memory_limit.h"

using namespace twinkle;
using namespace twinkle::tests;
using twinkle::archive::Archive;
using twinkle::runtime::exported::convert;

namespace {

// Why a program is refused; empty: it is not.
std::string refusal(const ExportedProgram& program, const std::string& result) {
    const Folder folder;
    try {
        convert(Archive(folder.write("model.pt2", program.bytes(result))), "");
    } catch (const Error& error) {
        return error.details().why;
    }
    return "";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// x times a parameter of several pages, in the module `layer`.
ExportedProgram product() {
    ExportedProgram program;
    program.add_parameter({"layer.weight"});
    program.add_tensor("y", {2, 4});
    program.add_node("torch.ops.aten.mul.Tensor",
                     base::Json::array({{{"name", "self"}, {"arg", tensor("x")}},
                                        {{"name", "other"}, {"arg", tensor("p_0")}}}),
                     base::Json::array({tensor("y")}), "L__self__layer,layer,pkg.Layer");
    program.records.emplace_back("model/extra/padding", std::string(1 << 20, ' '));
    return program;
}

// "k0,a,C;k1,a.a,C;…"
std::string nested_calls(int depth, const std::string& key) {
    std::string stack;
    std::string path;
    for (int i = 0; i < depth; ++i) {
        path += (i == 0 ? "" : ".") + std::string("a");
        stack += (i == 0 ? "" : ";") + key + std::to_string(i) + "," + path + ",C";
    }
    return stack;
}

class NoAttributes final : public runtime::exported::Attributes {
public:
    bool is_attribute(const std::string& /*value*/) const override { return false; }
    bool reaches(const std::string& /*path*/, const std::string& /*value*/) const override {
        return false;
    }
};

// In the module `path`.
runtime::exported::Node node_of(const std::string& target, const std::string& of,
                                const std::string& out, const std::string& path) {
    using runtime::exported::Argument;
    Argument from;
    from.kind = Argument::Kind::tensor;
    from.text = of;
    Argument to = from;
    to.text = out;
    runtime::exported::Node node;
    node.target = target;
    node.inputs.push_back({"self", from});
    node.outputs.push_back(to);
    node.modules = std::make_shared<runtime::exported::Frames>(
        runtime::exported::Frames{{"k_" + path, path, "C"}});
    return node;
}

}  // namespace

TEST_CASE("a program that is written down by hand is converted") {
    const Folder folder;
    auto model = convert(Archive(folder.write("model.pt2", product().bytes("y"))), "");
    const auto x = torch::rand({2, 4});
    CHECK(model.forward({x}).toTensor().equal(x));
    CHECK(model.attr("layer").toModule().find_method("forward"));
}

TEST_CASE("an archive that is cut short while it is read is refused") {
    const Folder folder;
    const auto file = folder.write("model.pt2", product().bytes("y"));
    const Archive archive(file);
    std::filesystem::resize_file(file, 10);
    CHECK_THROWS_AS(convert(archive, ""), Error);
    CHECK_THROWS_AS(archive.text("extra/padding", 2 << 20), Error);
}

TEST_CASE("a model stays as it is when its archive is cut short") {
    const Folder folder;
    const auto file = folder.write("model.pt2", product().bytes("y"));
    auto model = runtime::open_model_file(file, "");
    std::filesystem::resize_file(file, 0);
    const auto x = torch::rand({2, 4});
    CHECK(model.forward({x}).toTensor().equal(x));
    std::ofstream(file, std::ios::binary) << "something else";
    CHECK(model.forward({x}).toTensor().equal(x));
}

TEST_CASE("records are read as far as they are allowed to be large") {
    const Folder folder;
    const Archive archive(folder.write("model.pt2", product().bytes("y")));
    CHECK(archive.size_of("extra/padding") == 1 << 20);
    CHECK(archive.text("extra/padding", 1 << 20).size() == 1 << 20);
    CHECK_THROWS_AS(archive.text("extra/padding", (1 << 20) - 1), Error);
    CHECK_THROWS_AS(archive.text("extra/none", 1), Error);
}

TEST_CASE("calls of one key on two modules are two calls") {
    ExportedProgram program;
    program.add_sum("x", "y", "k,first,pkg.First");
    program.add_sum("y", "z", "k,second,pkg.Second");
    const Folder folder;
    auto model = convert(Archive(folder.write("model.pt2", program.bytes("z"))), "");
    REQUIRE(model.hasattr("first"));
    REQUIRE(model.hasattr("second"));
    CHECK(model.attr("second").toModule().find_method("forward"));
    const auto x = torch::rand({2, 4});
    CHECK(model.forward({x}).toTensor().equal(4 * x));
}

TEST_CASE("a module that is entered again, under the key of another, is part of its caller") {
    ExportedProgram program;
    program.add_sum("x", "a", "k,first,pkg.First");
    program.add_sum("a", "b", "k,second,pkg.Second");
    program.add_sum("b", "c", "k,first,pkg.First");
    const Folder folder;
    auto model = convert(Archive(folder.write("model.pt2", program.bytes("c"))), "");
    CHECK(model.attr("second").toModule().find_method("forward"));
    CHECK(model.forward({torch::ones({2, 4})}).toTensor().equal(torch::full({2, 4}, 8.0)));
}

TEST_CASE("calls that nest without end are refused before anything is made of them") {
    ExportedProgram program;
    program.add_sum("x", "y", nested_calls(1000, "k"));
    CHECK(contains(refusal(program, "y"), "deeply"));
}

TEST_CASE("names of calls have a length that somebody could have written") {
    const auto called = [](const std::string& stack) {
        ExportedProgram program;
        program.add_sum("x", "y", stack);
        return refusal(program, "y");
    };
    CHECK(called(std::string(1500, 'k') + ",a,C").empty());
    CHECK(called(nested_calls(99, "k")).empty());
    const std::string name(3000, 'n');
    CHECK(contains(called(name + ",a,C"), "longer names"));
    CHECK(contains(called("k," + name + ",C"), "longer names"));
    CHECK(contains(called("k,a," + name), "longer names"));
    CHECK(contains(called(nested_calls(150, "k")), "deeply"));
}

TEST_CASE("nodes that do not say where they are take no memory for it") {
    ExportedProgram program;
    const std::string stack = nested_calls(99, std::string(1900, 'k'));
    program.add_sum("x", "n0", stack);
    constexpr int nodes = 4000;
    for (int i = 1; i < nodes; ++i) {
        program.add_sum("n" + std::to_string(i - 1), "n" + std::to_string(i),
                        i + 1 < nodes ? "" : stack);
    }
    const Folder folder;
    const Archive archive(
        folder.write("model.pt2", program.bytes("n" + std::to_string(nodes - 1))));
    const MemoryLimit limit(400u << 20);  // 4000 times the stack are 800 MB
    auto read = runtime::exported::read_program(archive, "");
    const auto root = runtime::exported::call_tree(read, NoAttributes());
    REQUIRE(root->steps.size() == 1);
    CHECK(std::get<1>(root->steps.front())->path == "a");
}

// To follow each use through all aliases would take minutes.
TEST_CASE("a long chain of other names is followed once") {
    constexpr int count = 50'000;
    runtime::exported::Program program;
    program.graph.tensors["x"];
    std::string last = "x";
    for (int i = 0; i < count; ++i) {
        const std::string number = std::to_string(i);
        program.graph.tensors["alias" + number];
        program.graph.nodes.push_back(
            node_of("torch.ops.aten.alias.default", last, "alias" + number, "layer" + number));
        last = "alias" + number;
    }
    for (int i = 0; i < count; ++i) {
        program.graph.nodes.push_back(
            node_of("torch.ops.aten.relu.default", last, "y" + std::to_string(i), "users"));
    }
    const auto root = runtime::exported::call_tree(program, NoAttributes());
    CHECK(root->steps.size() == count + 1);
    const auto& nodes = program.graph.nodes;
    CHECK(std::all_of(nodes.begin(), nodes.end(),
                      [](const auto& node) { return node.inputs.front().value.text == "x"; }));
}

// To write it down readably first would take hours.
TEST_CASE("a condition that is too long is refused before anything is made of it") {
    ExportedProgram program;
    program.add_sum("x", "y");
    std::string guard;
    for (int i = 0; i < 2'000'000; ++i) {
        guard += "L['a']";
    }
    program.guards = {guard};
    CHECK(contains(refusal(program, "y"), "too long"));
}

TEST_CASE("keys of inputs have a length that somebody could have written") {
    ExportedProgram program;
    program.add_sum("x", "y");
    const auto one_of = [&](const std::vector<std::string>& keys) {
        base::Json nested = leaf();
        for (const std::string& key : keys) {
            nested = dict({key}, base::Json::array({nested}));
        }
        program.positional = tuple(base::Json::array({nested}));
        return refusal(program, "y");
    };
    CHECK(one_of({std::string(1000, 'k')}).empty());
    CHECK(contains(one_of({std::string(3000, 'k')}), "longer than any sane"));
    CHECK(contains(one_of(std::vector<std::string>(20, std::string(1000, 'k'))),
                   "longer than any sane"));
}

TEST_CASE("a scan carries tensors alone") {
    const auto scan_over = [](const base::Json& carried) {
        ExportedProgram program;
        program.add_tensor("total", {4});
        program.add_tensor("sums", {2, 4});
        const base::Json body = {
            {"inputs", base::Json::array({tensor("carry"), tensor("row")})},
            {"outputs", base::Json::array({tensor("row"), tensor("row")})},
            {"nodes", base::Json::array()},
            {"tensor_values", {{"carry", meta_of({4})}, {"row", meta_of({4})}}}};
        const auto argument = [](const base::Json& value) {
            return base::Json{{"name", ""}, {"arg", value}};
        };
        program.add_node(
            "torch.ops.higher_order.scan",
            base::Json::array({argument({{"as_graph", {{"name", "g"}, {"graph", body}}}}),
                               argument(carried), argument(tensors({"x"})),
                               argument({{"as_ints", base::Json::array()}})}),
            base::Json::array({tensor("total"), tensor("sums")}));
        return refusal(program, "sums");
    };
    CHECK(contains(scan_over({{"as_ints", {3}}}), "something else than tensors"));
    CHECK(scan_over(tensors({"x"})).empty());
}

TEST_CASE("many names of one tensor cost what they are many") {
    std::vector<std::string> names;
    for (int i = 0; i < 1000; ++i) {
        names.push_back("a_weight_with_a_long_name_as_models_have." + std::to_string(i));
    }
    ExportedProgram program;
    program.add_parameter(names);
    program.add_sum("x", "y");
    const auto start = std::chrono::steady_clock::now();
    CHECK(refusal(program, "y").empty());
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
    program.add_parameter({names.front() + ".below"});
    CHECK(contains(refusal(program, "y"), "a module and a tensor"));
}
