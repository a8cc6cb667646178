// What depends on sizes alone: which tensors are taken out of a graph, and what is left.

#include "runtime/replay/early_values.h"
#include "runtime/fake_graphs.h"
#include "runtime/graph/graph_walk.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/passes/inliner.h>

// After LibTorch.
#include "catch.h"

using namespace twinkle;

namespace {

torch::jit::Module model_of(const std::string& forward) {
    torch::jit::Module model = tests::graph_model("def before(self, x):\n    return x\n");
    model.register_parameter("large", torch::ones({1 << 19}), false);
    model.define(forward);
    return model;
}

std::set<std::string> kinds_of(const torch::jit::Graph& graph) {
    std::set<std::string> kinds;
    runtime::for_each_node(graph.block(), [&](const torch::jit::Node* node) {
        kinds.insert(node->kind().toQualString());
    });
    return kinds;
}

c10::IValue result_of(const std::shared_ptr<torch::jit::Graph>& graph,
                      const std::vector<c10::IValue>& arguments) {
    torch::jit::GraphFunction function("forward", graph, nullptr);
    torch::jit::Stack stack = arguments;
    function.run(stack);
    return stack.back();
}

// How many were taken, after a comparison of the results.
std::size_t taken_from(const std::string& forward, const std::set<std::string>& gone = {}) {
    const torch::jit::Module model = model_of(forward);
    const auto whole = torch::jit::toGraphFunction(model.get_method("forward").function()).graph();
    torch::jit::Inline(*whole);
    const auto late = whole->copy();
    const auto early = runtime::take_early_values(late, *model._ivalue());
    const std::vector<c10::IValue> first{model._ivalue(), torch::randn({2, 4})};
    std::vector<c10::IValue> second{model._ivalue(), torch::randn({2, 4})};
    if (!early) {
        CHECK(late->toString(false) == whole->copy()->toString(false));
        return 0;
    }
    const auto values = result_of(early, first).toTupleRef().elements().vec();
    const auto want = runtime::tensors_of(result_of(whole->copy(), second));
    second.insert(second.end(), values.begin(), values.end());
    const auto have = runtime::tensors_of(result_of(late, second));
    REQUIRE(have.size() == want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
        CHECK(at::allclose(have[i], want[i]));
    }
    for (const std::string& kind : gone) {
        CHECK(kinds_of(*late).count(kind) == 0);
        CHECK(kinds_of(*early).count(kind) == 1);
    }
    return values.size();
}

}  // namespace

TEST_CASE("tables of positions are computed early") {
    CHECK(taken_from(R"(
def forward(self, x):
    angles = torch.arange(x.size(1), device=x.device).float() * self.weight
    return x * angles.cos() + angles.sin(), x - 1
)",
                     {"aten::arange", "aten::cos", "aten::sin"}) == 2);
}

TEST_CASE("sizes of what is computed are known, too") {
    CHECK(taken_from(R"(
def forward(self, x):
    y = torch.cat([x, x])
    return y + torch.ones([y.size(0), 1]).cumsum(0), torch.stack([y, torch.ones(y.size()).exp()])
)",
                     {"aten::cumsum", "aten::exp"}) == 2);
}

TEST_CASE("views of such tensors are taken with them, of weights they stay") {
    CHECK(taken_from(R"(
def forward(self, x):
    table = torch.ones([x.size(0)]).cumsum(0).unsqueeze(1)
    return x + table, x + self.weight.unsqueeze(0)
)",
                     {"aten::cumsum", "aten::ones"}) == 1);
}

TEST_CASE("what may differ from run to run is computed in each") {
    CHECK(taken_from("def forward(self, x):\n    return x + x.cos().sin()\n") == 0);
    const std::string random = "def forward(self, x):\n    return x * 0 + 0 * torch.rand([4])\n";
    CHECK(taken_from(random) == 0);
}

TEST_CASE("what is written or returned is made by each run") {
    CHECK(taken_from(R"(
def forward(self, x):
    table = torch.ones([x.size(1)])
    table.add_(x[0])
    return x + table
)") == 0);
    CHECK(taken_from(R"(
def forward(self, x):
    table = torch.ones([x.size(1)]).cumsum(0)
    return x + table, table.view([2, 2])
)") == 0);
}

TEST_CASE("what is computed from large weights alone is not kept") {
    CHECK(taken_from("def forward(self, x):\n    return x + self.large.double().sum()\n") == 0);
    CHECK(taken_from("def forward(self, x):\n    return x + self.weight.exp()\n", {"aten::exp"}) ==
          1);
}

TEST_CASE("captured runs compute early values once for each shape") {
    tests::FakeBackend backend;
    const torch::jit::Module model = model_of(R"(
def forward(self, x):
    return x * torch.arange(x.size(0), device=x.device).float().cos().unsqueeze(1)
)");
    runtime::ModelGraphs graphs(model, {}, at::kCPU, backend.finder());
    const torch::NoGradGuard no_grad;
    for (const int rows : {2, 3, 2, 3, 2, 3}) {
        const at::Tensor x = torch::randn({rows, 4});
        CHECK(at::allclose(graphs.forward({x}, {}).toTensor(),
                           x * torch::arange(rows).to(torch::kFloat).cos().unsqueeze(1)));
    }
    CHECK(graphs.statistics().replays == 4);
    CHECK(graphs.statistics().captures == 2);
}
