// Weights of linear layers that twinkle::load lays out for this machine.

#include "api/saved_model.h"

#include <functional>
#include <sstream>

// After LibTorch.
#include "catch.h"

using namespace twinkle;

namespace {

// One with an activation, a gate and three of one input; the last one is as wide as no panel.
const std::string layers =
    "def forward(self, x):\n"
    "    x = torch.relu(torch.linear(x, self.in_weight, self.in_bias))\n"
    "    gate = torch.silu(torch.linear(x, self.gate_weight))\n"
    "    x = gate * torch.linear(x, self.up_weight)\n"
    "    q = torch.linear(x, self.q_weight)\n"
    "    k = torch.linear(x, self.k_weight)\n"
    "    v = torch.linear(x, self.v_weight)\n"
    "    return torch.linear(torch.cat([q, k, v], -1), self.out_weight)\n";

const std::vector<std::pair<std::string, std::vector<std::int64_t>>> weights{
    {"in_weight", {96, 64}},  {"gate_weight", {128, 96}}, {"up_weight", {128, 96}},
    {"q_weight", {64, 128}},  {"k_weight", {32, 128}},    {"v_weight", {32, 128}},
    {"out_weight", {33, 128}}};

torch::jit::Module all_layers(at::ScalarType dtype,
                              const std::function<void(torch::jit::Module&)>& change) {
    auto unit = std::make_shared<torch::jit::CompilationUnit>();
    torch::jit::Module root(c10::QualifiedName("__torch__.tests.Linears"), unit, true);
    root.register_attribute("training", c10::BoolType::get(), true);
    for (const auto& [name, sizes] : weights) {
        root.register_parameter(name, torch::randn(sizes).div_(8).to(dtype), false);
    }
    root.register_parameter("in_bias", torch::randn({96}).to(dtype), false);
    root.define(layers);
    root.eval();
    if (change) {
        change(root);
    }
    return root;
}

class Saved : public tests::SavedModel {
public:
    explicit Saved(at::ScalarType dtype = at::kFloat,
                   const std::function<void(torch::jit::Module&)>& change = {})
        : SavedModel(all_layers(dtype, change), "linear") {}
};

std::vector<std::string> changed(const torch::jit::Module& model) {
    std::vector<std::string> names;
    for (const auto& [name, sizes] : weights) {
        if (model.attr(name).toTensor().sizes() != at::IntArrayRef(sizes)) {
            names.push_back(name);
        }
    }
    return names;
}

const std::vector<std::string> all_but_out{"in_weight", "gate_weight", "up_weight",
                                           "q_weight",  "k_weight",    "v_weight"};

at::Tensor run(torch::jit::Module model, const at::Tensor& x) {
    const torch::NoGradGuard no_grad;
    return model.forward({x}).toTensor();
}

// Whether the pack prepacks this dtype on this machine (TWINKLE_PACK_ISA).
bool prepacks(const Saved& saved, at::ScalarType dtype) {
    const std::string space = required_kernels(saved.file()).at(0).op_namespace;
    load_required_kernels(saved.file());
    torch::jit::Stack stack{torch::ones({32, 64}).to(dtype)};
    c10::Dispatcher::singleton()
        .findSchemaOrThrow((space + "::linear_prepack").c_str(), "")
        .callBoxed(stack);
    return stack.at(0).isTensor();
}

void check_close(const at::Tensor& result, const at::Tensor& wanted) {
    const double unit = wanted.scalar_type() == at::kFloat ? 1e-5 : 2e-2;
    CHECK((result - wanted).abs().max().item<double>() <= unit * wanted.abs().max().item<double>());
}

}  // namespace

TEST_CASE("weights of linear layers are prepacked when a model is loaded") {
    at::manual_seed(71);
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
        const Saved saved(dtype);
        torch::jit::Module model = saved.load(true), plain = saved.load(false);
        CHECK(changed(plain).empty());
        if (!prepacks(saved, dtype)) {
            CHECK(changed(model).empty());
            continue;
        }
        CHECK(changed(model) == all_but_out);
        for (const std::int64_t rows : {1, 3, 16, 130}) {
            const at::Tensor x = torch::randn({rows, 64}).to(dtype);
            check_close(run(model, x), run(plain, x));
            check_close(run(model, x.unsqueeze(1)), run(plain, x.unsqueeze(1)));
        }
        const at::Tensor x = torch::randn({5, 64}).to(dtype);
        // Also where gradients are recorded.
        check_close(model.forward({x}).toTensor().detach(), run(plain, x));
        check_close(run(torch::jit::freeze(model.deepcopy()), x), run(plain, x));
        model.to(at::kDouble);
        plain.to(at::kDouble);
        check_close(run(model, x.to(at::kDouble)).to(at::kFloat),
                    run(plain, x.to(at::kDouble)).to(at::kFloat));
    }
}

TEST_CASE("models that came in another way are prepacked when a program asks for it") {
    const Saved saved;
    if (!prepacks(saved, at::kFloat)) {
        return;
    }
    const at::Tensor x = torch::randn({3, 64}), wanted = run(saved.load(false), x);
    torch::jit::Module model = torch::jit::load(saved.file().string());
    CHECK(twinkle::prepack(model) == all_but_out.size());
    CHECK(changed(model) == all_but_out);
    check_close(run(model, x), wanted);
    CHECK(twinkle::prepack(model) == 0);
    check_close(run(model, x), wanted);
    torch::jit::Module training = saved.load(false);
    training.train();
    CHECK(twinkle::prepack(training) == 0);
    CHECK(twinkle::prepack(torch::jit::Module("plain")) == 0);
}

TEST_CASE("weights of linear layers that something else reads stay as they are") {
    const auto changed_with = [](const std::string& method) {
        const Saved saved(at::kFloat, [&](torch::jit::Module& root) { root.define(method); });
        return changed(saved.load(true));
    };
    if (!prepacks(Saved(), at::kFloat)) {
        return;
    }
    const std::vector<std::string> without_q{"in_weight", "gate_weight", "up_weight", "k_weight",
                                             "v_weight"};
    CHECK(changed_with("def norm(self):\n    return self.q_weight.norm()\n") == without_q);
    CHECK(changed_with("def get(self):\n    return self.q_weight\n") == without_q);
    CHECK(changed_with("def both(self):\n    return [self.q_weight, self.in_bias]\n") == without_q);
    CHECK(changed_with("def set(self, w):\n    self.q_weight = w\n") == without_q);
    CHECK(changed_with("def either(self, first: bool):\n"
                       "    if first:\n"
                       "        w = self.q_weight\n"
                       "    else:\n"
                       "        w = self.in_bias\n"
                       "    return w\n") == without_q);
    CHECK(changed_with("def loop(self, n: int):\n"
                       "    w = self.in_bias\n"
                       "    for i in range(n):\n"
                       "        w = self.q_weight\n"
                       "    return w\n") == without_q);
    CHECK(changed_with("def sum(self, n: int):\n"
                       "    s = torch.zeros([1])\n"
                       "    for i in range(n):\n"
                       "        s += self.q_weight.sum()\n"
                       "    return s\n") == without_q);
    // A branch that never runs counts for nothing: LibTorch leaves out this one itself, and those
    // of the next tests depend on what a method is called with.
    CHECK(changed_with("def never(self):\n"
                       "    w = self.in_bias\n"
                       "    if 1 == 2:\n"
                       "        w = self.q_weight\n"
                       "    return w\n") == all_but_out);
    CHECK(changed_with("def bias(self):\n    return self.in_bias\n") == all_but_out);
}

TEST_CASE("tied weights of linear layers stay as they are") {
    const Saved saved(at::kFloat, [](torch::jit::Module& root) {
        root.setattr("up_weight", root.attr("gate_weight"));
    });
    if (!prepacks(saved, at::kFloat)) {
        return;
    }
    torch::jit::Module model = saved.load(true);
    const at::Tensor x = torch::randn({7, 64});
    CHECK(model.attr("up_weight").toTensor().dim() == 2);
    CHECK(model.attr("gate_weight").toTensor().dim() == 2);
    check_close(run(model, x), run(saved.load(false), x));
}

TEST_CASE("a model with prepacked linear layers can be saved for this machine") {
    const Saved saved;
    if (!prepacks(saved, at::kFloat)) {
        return;
    }
    const at::Tensor x = torch::randn({3, 64}), wanted = run(saved.load(false), x);
    std::stringstream bytes;
    saved.load(true).save(bytes);
    CHECK(bytes.str().size() < std::filesystem::file_size(saved.file()) + 65536);
    check_close(run(torch::jit::load(bytes), x), wanted);
}

namespace {

// Whether the weight of a linear layer that the root calls is prepacked, if that layer has these
// methods, too, and the root this one.
bool is_inner_prepacked(const std::string& inner_methods, const std::string& root_method) {
    const Saved saved(at::kFloat, [&](torch::jit::Module& root) {
        torch::jit::Module inner(c10::QualifiedName("__torch__.tests.Inner"),
                                 root._ivalue()->compilation_unit(), true);
        inner.register_parameter("weight", torch::randn({32, 64}), false);
        inner.register_parameter("bias", torch::randn({32}), false);
        inner.define(
            "def forward(self, x):\n"
            "    return torch.linear(x, self.weight, self.bias)\n");
        if (!inner_methods.empty()) {
            inner.define(inner_methods);
        }
        root.register_module("inner", inner);
        root.define("def of_inner(self, x):\n    return self.inner.forward(x)\n");
        root.define(root_method);
    });
    return saved.load(true).attr("inner").toModule().attr("weight").toTensor().dim() == 4;
}

}  // namespace

TEST_CASE("weights are followed with what methods are called with") {
    if (!prepacks(Saved(), at::kFloat)) {
        return;
    }
    const std::string pick =
        "def pick(self, which: int):\n"
        "    w = self.bias\n"
        "    if which + 1 == 2:\n"
        "        w = self.weight\n"
        "    return w.sum()\n";
    CHECK(is_inner_prepacked(pick, "def other(self):\n    return self.inner.pick(2)\n"));
    CHECK_FALSE(is_inner_prepacked(pick, "def other(self):\n    return self.inner.pick(1)\n"));
    CHECK_FALSE(
        is_inner_prepacked(pick, "def other(self, n: int):\n    return self.inner.pick(n)\n"));
    CHECK_FALSE(is_inner_prepacked(
        pick, "def other(self):\n    return self.inner.pick(2) + self.inner.pick(1)\n"));
    CHECK_FALSE(
        is_inner_prepacked("def norm_of(self, w):\n    return w.norm()\n",
                           "def other(self):\n    return self.inner.norm_of(self.inner.weight)\n"));
    // Two operators may want it in different ways.
    CHECK(is_inner_prepacked(
        "", "def other(self, x):\n    return torch.linear(x, self.inner.weight)\n"));
    CHECK_FALSE(is_inner_prepacked(
        "", "def other(self, x):\n    return torch.relu(torch.linear(x, self.inner.weight))\n"));
}

TEST_CASE("methods that LibTorch calls by itself are followed, too") {
    if (!prepacks(Saved(), at::kFloat)) {
        return;
    }
    const auto with = [](const std::string& enter) {
        return "def __enter__(self):\n    return self." + enter +
               "\n"
               "def __exit__(self, type: Any, value: Any, traceback: Any):\n"
               "    pass\n";
    };
    const std::string guarded =
        "def guarded(self, x):\n"
        "    with self.inner as y:\n"
        "        x = x + y\n"
        "    return x\n";
    CHECK(is_inner_prepacked(with("bias.norm()"), guarded));
    CHECK_FALSE(is_inner_prepacked(with("weight.norm()"), guarded));
}

// Each function holds the one before in branches of its own.
TEST_CASE("code that is nested too deeply leaves weights as they are") {
    if (!prepacks(Saved(), at::kFloat)) {
        return;
    }
    std::string methods = "def f0(self, c: bool):\n    return 0\n";
    for (int i = 1; i < 60; ++i) {
        std::string call = "self.f" + std::to_string(i - 1) + "(c)";
        for (int level = 0; level < 60; ++level) {
            call = "(" + call + " if c else 1)";
        }
        methods += "def f" + std::to_string(i) + "(self, c: bool):\n    return " + call + "\n";
    }
    const std::string root = "def deep(self, c: bool):\n    return self.inner.f59(c)\n";
    CHECK_FALSE(is_inner_prepacked(methods, root));
    CHECK(is_inner_prepacked(methods, "def flat(self, c: bool):\n    return 1\n"));
}
