// Sites, their classes and their graphs.

#include "runtime/classes/own_class.h"
#include "runtime/graph/class_name.h"
#include "runtime/graph/sites.h"
#include "runtime/layers/lost_attributes.h"
#include "runtime/model/marker.h"
#include "runtime/model/no_kernel_loading.h"
#include "runtime/scripted.h"

#include <torch/csrc/jit/ir/irparser.h>

#include <sstream>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using namespace twinkle::runtime;

namespace {

torch::jit::Module reloaded(const torch::jit::Module& module) {
    std::stringstream bytes;
    module.save(bytes);
    return torch::jit::load(bytes);
}

// Two blocks of one class in a list, each with a norm of one class: root → blocks.0.norm,
// blocks.1.norm
torch::jit::Module shared_model() {
    auto unit = std::make_shared<torch::jit::CompilationUnit>();
    auto norm =
        tests::module_of("Norm", "def forward(self, x):\n    return x * self.weight\n", unit);
    const auto instance = [&](const torch::jit::Module& of) {
        torch::jit::Module copy(unit, of.type());
        for (std::size_t i = 0; i < of.type()->numAttributes(); ++i) {
            copy._ivalue()->setSlot(i, of._ivalue()->getSlot(i));
        }
        return copy;
    };
    torch::jit::Module block(c10::QualifiedName("__torch__.tests.Block"), unit, true);
    block.register_module("norm", norm);
    block.define("def forward(self, x):\n    return self.norm.forward(x) + 1\n");
    torch::jit::Module second = instance(block);
    second._ivalue()->setAttr("norm", instance(norm)._ivalue());
    torch::jit::Module list(c10::QualifiedName("__torch__.tests.List"), unit, true);
    list.register_module("0", block);
    list.register_module("1", second);
    torch::jit::Module root(c10::QualifiedName("__torch__.tests.Root"), unit, true);
    root.register_module("blocks", list);
    // Reaches through the list, as a loop over a ModuleList does.
    auto graph = std::make_shared<torch::jit::Graph>();
    auto* self = graph->addInput("self")->setType(root.type());
    auto* value = graph->addInput("x");
    auto* blocks = graph->insertGetAttr(self, "blocks");
    for (const char* name : {"0", "1"}) {
        auto* one = graph->insertGetAttr(blocks, name);
        torch::jit::MatchedSchema match{{one, value}, {c10::TensorType::get()}, {}, "forward"};
        value = graph->insertMethodCall("forward", match);
    }
    graph->registerOutput(value);
    auto* method =
        unit->create_function(c10::QualifiedName(*root.type()->name(), "forward"), graph);
    root.type()->addMethod(method);
    return root;
}

}  // namespace

TEST_CASE("names lose their mangling") {
    CHECK(unmangled("__torch__.pkg.mod.___torch_mangle_5.Name") == "pkg.mod.Name");
    CHECK(unmangled("__torch__.Name") == "Name");
    CHECK(unmangled("pkg.__torch__.Name") == "pkg.__torch__.Name");
}

TEST_CASE("instances are listed once, parents first") {
    const auto root = shared_model();
    std::vector<std::string> paths;
    for (const Instance& instance : instances_of(root)) {
        paths.push_back(instance.path);
    }
    CHECK(paths == std::vector<std::string>{"", "blocks", "blocks.0", "blocks.0.norm", "blocks.1",
                                            "blocks.1.norm"});
    CHECK(instance_at(root, "blocks.1.norm") == instances_of(root).back().module);
}

TEST_CASE("one instance gets a class of its own, and the model stays itself") {
    for (const std::string path : {"blocks.0.norm", "blocks.1.norm", "blocks.0"}) {
        auto root = shared_model();
        const at::Tensor x = torch::rand({3, 4});
        const auto weights = instance_at(root, path).parameters();
        const void* storage = (*weights.begin()).data_ptr();
        REQUIRE(separate_classes(root, {{instance_at(root, path)._ivalue().get(), 1}}));
        const auto alone = instance_at(root, path);
        std::size_t sharing = 0;
        for (const Instance& instance : instances_of(root)) {
            sharing += instance.module.type() == alone.type() ? 1 : 0;
        }
        CHECK(sharing == 1);
        CHECK((*alone.parameters().begin()).data_ptr() == storage);  // no copy of the weights
        // Changing its forward changes this instance, not the other.
        auto graph = torch::jit::toGraphFunction(alone.type()->getMethod("forward")).graph();
        torch::jit::WithInsertPoint before(graph->return_node());
        auto* doubled = graph->insert(c10::aten::mul, {graph->outputs()[0], 2.0});
        graph->return_node()->replaceInput(0, doubled);
        const at::Tensor plain = shared_model().forward({x}).toTensor();
        const auto expected = path == "blocks.0.norm"   ? (x * 2 + 1) + 1
                              : path == "blocks.1.norm" ? (x + 1) * 2 + 1
                                                        : (x + 1) * 2 + 1;
        CHECK(torch::allclose(plain, x + 2));
        CHECK(torch::allclose(reloaded(root).forward({x}).toTensor(), expected));
        CHECK(torch::allclose(root.forward({x}).toTensor(), expected));
    }
}

TEST_CASE("an epsilon that tracing dropped is found by rule, two different ones are not") {
    const auto graph_of = [](const std::string& text) {
        auto graph = std::make_shared<torch::jit::Graph>();
        torch::jit::parseIR(text, graph.get());
        return graph;
    };
    const std::string norm = R"IR(
graph(%x : Tensor):
  %two : int = prim::Constant[value=2]()
  %one : int = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %true : bool = prim::Constant[value=1]()
  %minus : int = prim::Constant[value=-1]()
  %dims : int[] = prim::ListConstruct(%minus)
  %eps : float = prim::Constant[value=0.001]()
  %other : float = prim::Constant[value=0.01]()
  %p : Tensor = aten::pow(%x, %two)
  %m : Tensor = aten::mean(%p, %dims, %true, %none)
  %a : Tensor = aten::add(%m, %eps, %one)
  %r : Tensor = aten::rsqrt(%a)
)IR";
    auto single = graph_of(norm + "  return (%r)\n");
    const auto found = lost_attributes(*single).values;
    REQUIRE(found.contains("variance_epsilon"));
    CHECK(found.at("variance_epsilon").toDouble() == 0.001);
    CHECK(found.at("eps").toDouble() == 0.001);
    auto two = graph_of(norm +
                        "  %b : Tensor = aten::add(%m, %other, %one)\n"
                        "  %s : Tensor = aten::rsqrt(%b)\n  return (%s)\n");
    CHECK(lost_attributes(*two).values.empty());
    auto none = graph_of(norm +
                         "  %c : Tensor = aten::add(%x, %other, %one)\n"
                         "  %s : Tensor = aten::rsqrt(%c)\n  return (%s)\n");
    CHECK(
        lost_attributes(*none).values.empty());  // rsqrt of something that is no mean: no certainty
}

TEST_CASE("a marker survives saving and freezing, and is read back") {
    const RequiredKernel kernel{"org/name@1", "torch-cpu", "ns_0123", std::string(64, 'a')};
    CHECK(parse_marker(marker_text(kernel))->build_id == kernel.build_id);
    CHECK_FALSE(parse_marker("anything else"));
    CHECK_THROWS_AS(parse_marker("twinkle.kernel/1 namespace=a name=b"), Error);
    CHECK_THROWS_AS(parse_marker("twinkle.kernel/1 namespace=a;rm name=b variant=c build=d"),
                    Error);

    auto model = tests::module_of("Host", "def forward(self, x):\n    return x + 1\n");
    model.eval();
    mark_model(model, kernel);
    const tests::Folder folder;
    const auto check = [&](const torch::jit::Module& module, const std::string& name) {
        const auto file = (folder.path() / name).string();
        module.save(file);
        const auto found = required_kernels(file);
        REQUIRE(found.size() == 1);
        CHECK(found[0].name == "org/name@1");
        CHECK(found[0].variant == "torch-cpu");
        CHECK(found[0].op_namespace == "ns_0123");
        CHECK(found[0].build_id == kernel.build_id);
    };
    check(model, "marked.pt");
    // Reading a model loads its kernels, and this one does not exist.
    CHECK_THROWS_WITH(reloaded(model), ContainsSubstring("needs the kernel org/name@1"));
    const NoKernelLoading as_asked;
    check(reloaded(model), "again.pt");
    auto fresh = reloaded(model);
    check(torch::jit::freeze(fresh), "frozen.pt");
}
