// The effects of tracing on a module, one case each, as graphs: attributes lost, parameters passed,
// tuples flattened, outputs dropped. tests/cli drives whole traced models.

#include "runtime/graph/passed_parameters.h"
#include "runtime/layers/lost_attributes.h"
#include "runtime/layers/site_adapter.h"
#include "runtime/scripted.h"
#include "twinkle/twinkle.h"

#include <torch/csrc/jit/ir/irparser.h>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using namespace twinkle::runtime;

namespace {

std::shared_ptr<torch::jit::Graph> graph_of(const std::string& text) {
    auto graph = std::make_shared<torch::jit::Graph>();
    torch::jit::parseIR(text, graph.get());
    return graph;
}

LostAttributes lost_in(const std::string& body) {
    const auto graph = graph_of(R"IR(
graph(%self, %x : Tensor):
  %none : NoneType = prim::Constant()
  %false : bool = prim::Constant[value=0]()
  %true : bool = prim::Constant[value=1]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %minus : int = prim::Constant[value=-1]()
  %six : int = prim::Constant[value=6]()
  %half : float = prim::Constant[value=-0.5]()
  %eps : float = prim::Constant[value=0.25]()
  %dims : int[] = prim::ListConstruct(%minus)
  %pair : int[] = prim::ListConstruct(%two, %one)
  %weight : Tensor = prim::GetAttr[name="weight"](%self)
)IR" + body);
    return lost_attributes(*graph);
}

const std::string mean_and_epsilon = R"IR(
  %p : Tensor = aten::pow(%x, %two)
  %m : Tensor = aten::mean(%p, %dims, %true, %none)
  %a : Tensor = aten::add(%m, %eps, %one)
)IR";

// A layer of one Python text, bound to the class of `module`.
Report kernelized(torch::jit::Module& model, const std::string& source, const std::string& name) {
    const tests::Folder folder;
    return kernelize(model, tests::mapping_to_package(folder, source, "Layer", name));
}

}  // namespace

TEST_CASE("an epsilon is found in every form of an RMSNorm") {
    for (const char* root :
         {"  %r : Tensor = aten::rsqrt(%a)\n", "  %r : Tensor = aten::sqrt(%a)\n",
          "  %r : Tensor = aten::pow(%a, %half)\n"}) {
        const auto lost = lost_in(mean_and_epsilon + root + "  return (%r)\n").values;
        INFO(root);
        REQUIRE(lost.contains("variance_epsilon"));
        CHECK(lost.at("variance_epsilon").toDouble() == 0.25);
        CHECK(lost.at("eps").toDouble() == 0.25);
    }
    // Added to the root instead, it is no epsilon of this kind; and pow(…, 2) is no root.
    CHECK(lost_in(mean_and_epsilon + "  %r : Tensor = aten::pow(%a, %two)\n  return (%r)\n")
              .values.empty());
    CHECK(lost_in("  %s : Tensor = aten::sqrt(%x)\n  %r : Tensor = aten::add(%s, %eps, %one)\n"
                  "  return (%r)\n")
              .values.empty());
}

TEST_CASE("the epsilon of a zero-centred norm is no variance_epsilon") {
    const auto lost = lost_in(mean_and_epsilon + R"IR(
  %r : Tensor = aten::rsqrt(%a)
  %w : Tensor = aten::to(%weight, %six, %false, %false, %none)
  %c : Tensor = aten::add(%w, %one, %one)
  %y : Tensor = aten::mul(%r, %c)
  return (%y)
)IR");
    CHECK(lost.values.at("eps").toDouble() == 0.25);
    CHECK_FALSE(lost.values.contains("variance_epsilon"));
    CHECK_THAT(lost.withheld.at("variance_epsilon"), ContainsSubstring("weight + 1"));
}

TEST_CASE("arguments of the one operator of a module are its attributes") {
    const std::string convolution = R"IR(
  %y : Tensor = aten::_convolution(%x, %weight, %none, %pair, %dims, %pair, %false, %pair, %two, %false, %false, %true, %true)
)IR";
    const auto lost = lost_in(convolution + "  return (%y)\n").values;
    CHECK(lost.at("stride").toIntVector() == std::vector<std::int64_t>{2, 1});
    CHECK(lost.at("padding").toIntVector() == std::vector<std::int64_t>{-1});
    CHECK(lost.at("groups").toInt() == 2);
    CHECK(lost.at("bias").isNone());
    // If the module does more than that, they might belong to something else.
    CHECK(lost_in("  %x : Tensor = aten::relu(%x)\n" + convolution + "  return (%y)\n")
              .values.empty());
    CHECK(lost_in(convolution + "  %z : Tensor = aten::relu(%y)\n  return (%z)\n").values.empty());
}

TEST_CASE("two values for one attribute are none") {
    const auto lost = lost_in(R"IR(
  %a : Tensor = aten::layer_norm(%x, %pair, %weight, %weight, %eps, %true)
  %b : Tensor = aten::layer_norm(%a, %pair, %weight, %weight, %half, %true)
  return (%b)
)IR");
    CHECK_FALSE(lost.values.contains("eps"));
    CHECK_THAT(lost.withheld.at("eps"), ContainsSubstring("several"));
    CHECK(lost.values.at("normalized_shape").toIntVector() == std::vector<std::int64_t>{2, 1});
}

TEST_CASE("a parameter that every caller passes is the attribute of the one called") {
    auto unit = std::make_shared<torch::jit::CompilationUnit>();
    const std::string scaled = "def forward(self, weight, x):\n    return weight * x\n";
    auto holder = tests::module_of("Holder", "def forward(self, x):\n    return x\n", unit);
    auto tied = tests::module_of("Tied", scaled, unit);
    tied.setattr("weight", holder.attr("weight"));
    auto other = tests::module_of("Other", scaled, unit);
    auto torn = tests::module_of("Torn", scaled, unit);
    torch::jit::Module root(c10::QualifiedName("__torch__.tests.Tree"), unit, true);
    root.register_module("holder", holder);
    root.register_module("tied", tied);
    root.register_module("other", other);
    root.register_module("torn", torn);
    root.define(R"(
def forward(self, x):
    y = self.tied.forward(self.holder.weight, x)
    y = self.other.forward(self.holder.weight, y)
    y = self.torn.forward(self.holder.weight, y)
    return self.torn.forward(y, y)
)");
    const PassedParameters passed(root);
    CHECK(passed.of(tied, "forward") == PassedInputs{{1, "weight"}});
    CHECK(passed.of(other, "forward") == PassedInputs{{1, ""}});
    CHECK(passed.of(torn, "forward").empty());
    CHECK(passed.of(holder, "forward").empty());

    // The layer ignores it, and reads self.weight.
    const auto layer = R"(
import torch.nn as nn
class Layer(nn.Module):
    def forward(self, input):
        return input * self.weight * 2
)";
    const auto report = kernelized(root, layer, "tests.Tied");
    CHECK(report.count(SiteStatus::replaced) == 1);
    auto x = torch::full({4}, 3.0);
    holder.attr("weight").toTensor().set_requires_grad(true);
    const auto y = tied.forward({holder.attr("weight"), x}).toTensor();
    CHECK(torch::equal(y.detach(), x * 2));
    y.sum().backward();
    CHECK(holder.attr("weight").toTensor().grad().defined());
}

TEST_CASE("tuples are put together again, and dropped inputs are told by their names") {
    const auto graph = graph_of(R"IR(
graph(%self, %argument_1 : Tensor, %cos : Tensor, %sin : Tensor, %mask : Tensor):
  %a : Tensor = aten::mul(%argument_1, %cos)
  %b : Tensor = aten::mul(%a, %sin)
  %c : Tensor = aten::mul(%b, %mask)
  return (%c)
)IR");
    const LayerParameter x{"x", false, {}};
    const LayerParameter positions{"positions", false, 2};
    const LayerParameter mask{"mask", true, {}};
    const LayerParameter cache{"cache", true, {}};
    const auto fitted = fit(*graph, {x, positions, cache, mask}, {});
    REQUIRE(fitted);
    REQUIRE(fitted->arguments.size() == 3);
    CHECK(fitted->arguments[1].inputs == std::vector<std::size_t>{2, 3});
    CHECK(fitted->arguments[1].type->kind() == c10::TypeKind::TupleType);
    CHECK(fitted->arguments[2].name == "mask");
    // Does not guess which of the two optional ones was dropped.
    const LayerParameter scale{"scale", true, {}};
    const auto unclear = fit(*graph, {x, positions, cache, scale}, {});
    REQUIRE_FALSE(unclear);
    CHECK_THAT(unclear.error(), ContainsSubstring("not clear"));
    CHECK_FALSE(fit(*graph, {x, mask}, {}));
}

TEST_CASE("None among a layer's results was dropped by the trace") {
    auto model = tests::module_of("Host", "def forward(self, x):\n    return x * 2\n");
    const auto layer = R"(
import torch.nn as nn
class Layer(nn.Module):
    def forward(self, x):
        return x * 3, None
)";
    CHECK(kernelized(model, layer, "tests.Host").count(SiteStatus::replaced) == 1);
    CHECK(model.forward({torch::ones({1})}).toTensor().item<double>() == 3);

    auto unused =
        tests::module_of("Host", "def forward(self, x):\n    y = x * 2\n    return None\n");
    const auto report = kernelized(unused, layer, "tests.Host");
    REQUIRE(report.count(SiteStatus::kept) == 1);
    CHECK_THAT(report.sites[0].because, ContainsSubstring("nothing uses its result"));
}
