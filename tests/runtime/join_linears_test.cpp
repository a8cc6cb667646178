// Linear layers that read one input: which are joined, what they then compute, and what that takes.

#include "runtime/replay/join_linears.h"
#include "runtime/fake_graphs.h"
#include "runtime/graph/graph_walk.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>
#include <torch/library.h>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using runtime::JoinedLinears;

namespace {

at::Tensor linear_int8(const at::Tensor& x, const at::Tensor& values, const at::Tensor& scales,
                       const std::optional<at::Tensor>& bias) {
    return at::linear(x, values.to(at::kFloat) * scales, bias);
}
at::Tensor doubled(const at::Tensor& x) {
    return x * 2;
}

TORCH_LIBRARY(twinkle_pack_joined, library) {
    library.def("linear_int8(Tensor x, Tensor values, Tensor scales, Tensor? bias) -> Tensor",
                linear_int8);
    library.def("linear_fp8(Tensor x, Tensor values, Tensor scales, Tensor? bias) -> Tensor",
                linear_int8);
    library.def("doubled(Tensor x) -> Tensor", doubled);
}
TORCH_LIBRARY(joined_tests, library) {
    library.def("doubled(Tensor x) -> Tensor", doubled);
}

// Makes torch known, and NAMESPACE.OPERATOR as NAMESPACE_OPERATOR.
struct Operators : torch::jit::Resolver {
    std::shared_ptr<torch::jit::SugaredValue> resolveValue(
        const std::string& name, torch::jit::GraphFunction& function,
        const torch::jit::SourceRange& range) override {
        for (const char* known :
             {"twinkle_pack_joined::linear_int8", "twinkle_pack_joined::linear_fp8",
              "twinkle_pack_joined::doubled", "joined_tests::doubled"}) {
            std::string flat = known;
            flat.replace(flat.find("::"), 2, "_");
            if (name == flat) {
                return std::make_shared<torch::jit::BuiltinFunction>(
                    c10::Symbol::fromQualString(known), std::nullopt);
            }
        }
        return torch::jit::nativeResolver()->resolveValue(name, function, range);
    }
};

// Weights a, b, c of 4, 8 and 4 outputs, odd of 3, biases of a and c; small packed ones.
torch::jit::Module model_of(const std::string& forward) {
    auto unit = std::make_shared<torch::jit::CompilationUnit>();
    torch::jit::Module model(c10::QualifiedName("__torch__.tests.Linears"), unit, true);
    model.register_attribute("training", c10::BoolType::get(), false);
    torch::manual_seed(5);
    model.register_parameter("a", torch::randn({4, 4}), false);
    model.register_parameter("b", torch::randn({8, 4}), false);
    model.register_parameter("c", torch::randn({4, 4}), false);
    model.register_parameter("odd", torch::randn({3, 4}), false);
    model.register_parameter("wide", torch::randn({4, 8}), false);
    model.register_parameter("fine", torch::randn({4, 4}, at::kDouble), false);
    model.register_parameter("a_bias", torch::randn({4}), false);
    model.register_parameter("c_bias", torch::randn({4}), false);
    for (const auto& [name, rows] : {std::pair{"p", 16}, {"q", 32}, {"r", 8}}) {
        model.register_buffer(name, torch::randint(-9, 9, {rows, 4}, at::kChar));
        model.register_buffer(std::string(name) + "_scales", torch::rand({rows, 1}));
        model.register_buffer(std::string(name) + "_fp8",
                              torch::randn({rows, 4}).to(at::kFloat8_e4m3fn));
    }
    model.define(forward, std::make_shared<Operators>());
    return model;
}

const char* qkv =
    "def forward(self, x):\n"
    "    q = torch.linear(x, self.a, self.a_bias)\n"
    "    k = torch.linear(x, self.b)\n"
    "    v = torch.linear(x, self.c, self.c_bias)\n"
    "    return (q * 2, k + 1, v.relu())\n";

std::size_t count(const torch::jit::Graph& graph, const std::string& kind) {
    std::size_t found = 0;
    runtime::for_each_node(graph.block(), [&](const torch::jit::Node* node) {
        found += node->kind().toQualString() == kind;
    });
    return found;
}

// Joins, compares what both compute, and returns what was joined.
JoinedLinears joined(const torch::jit::Module& model, const std::vector<c10::IValue>& inputs,
                     bool dense_results = false) {
    const torch::NoGradGuard no_grad;
    const auto graph = torch::jit::toGraphFunction(model.get_method("forward").function()).graph();
    const auto copy = graph->copy();
    const JoinedLinears done =
        runtime::join_linears(copy, *model._ivalue(), at::kCPU, dense_results);
    torch::jit::GraphFunction function("forward", copy, nullptr);
    torch::jit::Stack stack{model._ivalue()};
    stack.insert(stack.end(), inputs.begin(), inputs.end());
    function.run(stack);
    const auto want = runtime::tensors_of(model.get_method("forward")(inputs));
    const auto have = runtime::tensors_of(stack.back());
    REQUIRE(have.size() == want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
        CHECK(at::allclose(have[i], want[i], 1e-5, 1e-6));
    }
    const std::size_t before = count(*graph, "aten::linear");
    if (before > 0) {
        CHECK(count(*copy, "aten::linear") == before - done.layers);
    }
    return done;
}

std::size_t layers_joined(const std::string& forward) {
    return joined(model_of(forward), {torch::randn({2, 3, 4})}).layers;
}

}  // namespace

TEST_CASE("layers of one input are one, with zeros for a bias that one has not") {
    const JoinedLinears done = joined(model_of(qkv), {torch::randn({2, 3, 4})});
    CHECK(done.layers == 2);
    CHECK(done.bytes == (16 * 4 + 16) * sizeof(float));
    CHECK(joined(model_of(qkv), {torch::randn({4})}).layers == 2);
}

TEST_CASE("layers of modules inside are found through them") {
    torch::jit::Module outer = model_of("def forward(self, x):\n    return x\n");
    torch::jit::Module root(c10::QualifiedName("__torch__.tests.Outer"),
                            outer._ivalue()->compilation_unit(), true);
    torch::jit::Module inner = model_of(
        "def forward(self, x):\n    return torch.linear(x, self.a), torch.linear(x, self.b)\n");
    root.register_module("inner", inner);
    root.define(
        "def forward(self, x):\n    one, other = self.inner.forward(x * 1.0)\n    return one, "
        "other\n");
    const auto graph = torch::jit::toGraphFunction(root.get_method("forward").function()).graph();
    const auto copy = graph->copy();
    CHECK(runtime::join_linears(copy, *root._ivalue(), at::kCPU, false).layers == 1);
    CHECK(count(*copy, "aten::linear") == 1);
}

TEST_CASE("layers stay alone where one could not be a part of the other") {
    const auto pair = [](const std::string& one, const std::string& other) {
        return layers_joined("def forward(self, x):\n    y = x * 2\n    return " + one + ", " +
                             other + "\n");
    };
    CHECK(pair("torch.linear(x, self.a)", "torch.linear(x, self.b)") == 1);
    CHECK(pair("torch.linear(x, self.a)", "torch.linear(y, self.b)") == 0);
    CHECK(pair("torch.linear(x, self.a)", "torch.linear(torch.cat([x, x], -1), self.wide)") == 0);
    CHECK(pair("torch.linear(x.double(), self.fine)", "torch.linear(x, self.a)") == 0);
    CHECK(pair("torch.linear(x, self.a)", "torch.linear(x, self.odd)") == 0);
    // A weight that is computed.
    CHECK(pair("torch.linear(x, self.a)", "torch.linear(x, self.b * 2)") == 0);
}

TEST_CASE("layers of different branches stay where they are") {
    CHECK(layers_joined(R"(
def forward(self, x):
    y = torch.linear(x, self.a)
    if bool(x.sum() > 100000):
        y = torch.linear(x, self.a, self.a_bias)
    return y
)") == 0);
}

TEST_CASE("an input or a weight that is written to is not read earlier than before") {
    CHECK(layers_joined(R"(
def forward(self, x):
    y = x * 1
    one = torch.linear(y, self.a)
    y.mul_(2)
    return one, torch.linear(y, self.b)
)") == 0);
    CHECK(layers_joined(R"(
def forward(self, x):
    one = torch.linear(x, self.a)
    self.b.mul_(1)
    return one, torch.linear(x, self.b)
)") == 0);
}

TEST_CASE("results that are written to stay alone") {
    for (const char* written : {"one", "one.reshape(-1)", "one.contiguous()"}) {
        CHECK(layers_joined(std::string("def forward(self, x):\n"
                                        "    one = torch.linear(x, self.a)\n"
                                        "    other = torch.linear(x, self.b)\n    ") +
                            written + ".mul_(3)\n    return one, other\n") == 0);
    }
}

TEST_CASE("results that are read by strides stay alone") {
    CHECK(layers_joined(R"(
def forward(self, x):
    one = torch.linear(x, self.a)
    return torch.as_strided(one, [6, 4], [4, 1]), torch.linear(x, self.b)
)") == 0);
}

TEST_CASE("results of the model are dense where they are handed out as they are") {
    const torch::jit::Module model = model_of(
        "def forward(self, x):\n"
        "    return torch.linear(x, self.a), torch.linear(x, self.b), torch.linear(x, self.c) + 1, "
        "torch.linear(x, self.a) * 2\n");
    const std::vector<c10::IValue> x{torch::randn({3, 4})};
    CHECK(joined(model, x).layers == 3);
    CHECK(joined(model, x, /*dense_results=*/true).layers == 1);
}

TEST_CASE("kernels of somebody else get no views, the pack's do") {
    const auto through = [](const std::string& operation, const std::string& view) {
        return layers_joined(
            "def forward(self, x):\n    one = torch.linear(x, self.a)\n"
            "    other = torch.linear(x, self.b)\n    return " +
            operation + "(one" + view + "), other\n");
    };
    CHECK(through("joined_tests_doubled", "") == 0);
    CHECK(through("joined_tests_doubled", ".transpose(0, 1).unsqueeze(0)") == 0);
    CHECK(through("joined_tests_doubled", " + 1") == 1);
    CHECK(through("twinkle_pack_joined_doubled", "") == 1);
}

TEST_CASE("packed layers are joined in whole blocks of outputs") {
    const auto pair = [](const std::string& one, const std::string& other) {
        const auto layer = [](const std::string& name) {
            return "twinkle_pack_joined_linear_int8(x, self." + name + ", self." + name +
                   "_scales, None)";
        };
        return joined(model_of("def forward(self, x):\n    return " + layer(one) + ", " +
                               layer(other) + "\n"),
                      {torch::randn({2, 3, 4})});
    };
    CHECK(pair("p", "q").layers == 1);
    CHECK(pair("p", "q").bytes == 48 * 4 + 48 * sizeof(float));
    CHECK(pair("p", "r").layers == 0);
}

TEST_CASE("layers with weights of fp8 are joined") {
    const auto layer = [](const std::string& name) {
        return "twinkle_pack_joined_linear_fp8(x, self." + name + "_fp8, self." + name +
               "_scales, None)";
    };
    const JoinedLinears done = joined(
        model_of("def forward(self, x):\n    return " + layer("p") + ", " + layer("q") + "\n"),
        {torch::randn({2, 3, 4})});
    CHECK(done.layers == 1);
    CHECK(done.bytes == 48 * 4 + 48 * sizeof(float));
}

TEST_CASE("copies are bounded, and the smallest come first") {
    torch::jit::Module model = model_of("def before(self, x):\n    return x\n");
    model.register_parameter("large", torch::zeros({4, 2'500'000}), false);
    model.define(R"(
def forward(self, x, wide):
    one, other = torch.linear(wide, self.large), torch.linear(wide, self.large)
    return one, other, torch.linear(x, self.a), torch.linear(x, self.b)
)");
    const auto graph =
        torch::jit::toGraphFunction(model.get_method("forward").function()).graph()->copy();
    const JoinedLinears done = runtime::join_linears(graph, *model._ivalue(), at::kCPU, false);
    CHECK(done.layers == 1);
    CHECK(done.bytes == 12 * 4 * sizeof(float));
}

TEST_CASE("captured runs of a model compute them as one") {
    tests::FakeBackend backend;
    const torch::jit::Module model = model_of(qkv);
    const at::Tensor x = torch::randn({1, 4});
    const auto run = [&](GraphOptions options) {
        const torch::NoGradGuard no_grad;
        runtime::ModelGraphs graphs(model.clone(), options, at::kCPU, backend.finder());
        for (int i = 0; i < 3; ++i) {
            const auto want = runtime::tensors_of(model.get_method("forward")({x * i}));
            const auto have = runtime::tensors_of(graphs.forward({x * i}, {}));
            for (std::size_t k = 0; k < want.size(); ++k) {
                CHECK(at::allclose(have[k], want[k], 1e-5, 1e-6));
            }
        }
        const GraphStatistics said = graphs.statistics();
        graphs.clear();
        CHECK(graphs.statistics().joined_layers == 0);
        CHECK(said.replays == 2);
        return said;
    };
    const GraphStatistics said = run({});
    CHECK(said.joined_layers == 2);
    CHECK(said.joined_bytes == 320);
    CHECK(run({.clone_outputs = false}).joined_layers == 2);
    CHECK(run({.join = false}).joined_layers == 0);
    CHECK(run({.freeze = false}).joined_layers == 0);
}

TEST_CASE("weights of packed layers come to lie together where nobody else holds them") {
    const auto layer = [](const std::string& name, const std::string& type) {
        return "twinkle_pack_joined_linear_" + type + "(x, self." + name +
               (type == "fp8" ? "_fp8" : "") + ", self." + name + "_scales, None) + 1";
    };
    const std::string type = GENERATE("int8", "fp8");
    const std::string code =
        "def forward(self, x):\n    return " + layer("p", type) + ", " + layer("q", type) + "\n";
    const bool is_held = GENERATE(false, true);
    tests::FakeBackend backend;
    torch::jit::Module model = model_of(code);
    const torch::NoGradGuard no_grad;
    const at::Tensor x = torch::randn({1, 4});
    const auto want = runtime::tensors_of(model.get_method("forward")({x}));
    std::optional<torch::jit::Module> other;
    if (is_held) {
        other = model;
    }
    runtime::ModelGraphs graphs(std::move(model), {}, at::kCPU, backend.finder());
    for (int i = 0; i < 3; ++i) {
        const auto have = runtime::tensors_of(graphs.forward({x}, {}));
        for (std::size_t k = 0; k < want.size(); ++k) {
            CHECK(at::allclose(have[k], want[k], 1e-5, 1e-6));
        }
    }
    CHECK(graphs.statistics().replays == 2);
    CHECK(graphs.statistics().joined_layers == 1);
    CHECK(graphs.statistics().joined_bytes == (is_held ? 48 * 4 + 48 * sizeof(float) : 0));
    CHECK(backend.device.released == (is_held ? 0 : 1));
}

TEST_CASE("where joined layers cannot be captured, separate ones are") {
    tests::FakeBackend backend;
    // view() joins dimensions that a part of a tensor has apart.
    runtime::ModelGraphs graphs(model_of(R"(
def forward(self, x):
    return torch.linear(x, self.a).view(-1), torch.linear(x, self.b).view(-1)
)"),
                                {}, at::kCPU, backend.finder());
    const torch::NoGradGuard no_grad;
    const at::Tensor x = torch::randn({3, 4});
    for (int i = 0; i < 3; ++i) {
        graphs.forward({x}, {});
    }
    const GraphStatistics said = graphs.statistics();
    CHECK(said.replays == 2);
    CHECK(said.captures == 1);
    CHECK(said.joined_layers == 0);
    CHECK(said.joined_bytes == 0);
}

TEST_CASE("a capture that fails once leaves others as they are") {
    tests::FakeBackend backend;
    runtime::ModelGraphs graphs(model_of(qkv), {}, at::kCPU, backend.finder());
    backend.device.fails = [](int capture) {
        if (capture == 2 || capture == 3) {
            throw std::runtime_error("CUDA out of memory");
        }
    };
    const torch::NoGradGuard no_grad;
    for (const int rows : {1, 2, 3}) {
        graphs.forward({torch::randn({rows, 4})}, {});
        graphs.forward({torch::randn({rows, 4})}, {});
        CHECK(graphs.statistics().graphs == static_cast<std::size_t>(rows));
        CHECK(graphs.statistics().joined_layers == 2);
    }
}
