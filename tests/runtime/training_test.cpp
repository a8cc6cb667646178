// A kernel's autograd.Function as a node of autograd: the gradients of the original, whatever its
// ctx keeps, after save and load, in several threads; and refusals.

#include "runtime/model/model_file.h"
#include "runtime/scripted.h"
#include "twinkle/kernelize.h"

#include <torch/torch.h>

#include <algorithm>
#include <atomic>
#include <sstream>
#include <thread>

// After LibTorch.
#include "catch.h"

using namespace twinkle;

namespace {

// y = x² * weight * eps, whose sums have simple gradients.
const std::string original = R"(
def forward(self, x):
    return x * x * self.weight * self.eps
)";

const std::string head = R"(
import torch
import torch.nn as nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
)";

std::string layer(const std::string& call) {
    return "\nclass Layer(nn.Module):\n    has_backward = True\n"
           "    def forward(self, x):\n        return " +
           call + "\n";
}

// The body of a Function with forward and backward, and the layer that applies it.
const std::string square = R"(
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, factor):
        ctx.save_for_backward(x, weight)
        ctx.factor = factor
        return x * x * weight * factor

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad * 2 * x * weight * ctx.factor, (grad * x * x * ctx.factor).sum(0), None
)";

struct Made {
    torch::jit::Module model;
    Report report;
};

torch::jit::Module original_model(const std::string& forward = original) {
    auto model = tests::module_of("Model", forward);
    model.attr("weight").toTensor().copy_(torch::tensor({1.5, -2.0, 0.5, 3.0}));
    model.to(torch::kDouble);
    model.setattr("eps", 0.25);
    model.train();
    for (at::Tensor parameter : model.parameters()) {
        parameter.set_requires_grad(true);
    }
    return model;
}

Made kernelized(const std::string& layers, const std::string& mode = "training",
                const std::string& forward = original) {
    const tests::Folder folder;
    Mapping mapping = tests::mapping_to_package(folder, head + layers, "Layer", "tests.Model");
    mapping.layers[0].candidates[0].mode = mode;
    KernelizeOptions options;
    options.mode = mode;
    options.device = "cpu";
    Made made{original_model(forward), {}};
    made.report = kernelize(made.model, mapping, options);
    return made;
}

std::string why_kept(const std::string& layers) {
    const Made made = kernelized(layers);
    REQUIRE(made.report.sites.size() == 1);
    CHECK(made.report.sites[0].status == SiteStatus::kept);
    std::stringstream out;
    CHECK_NOTHROW(made.model.save(out));
    return made.report.sites[0].because;
}

struct Gradients {
    at::Tensor output, x, weight;
};

Gradients gradients(torch::jit::Module& model) {
    const at::Tensor x =
        torch::linspace(-2, 3, 12, torch::kDouble).reshape({3, 4}).set_requires_grad(true);
    const at::Tensor weight = model.attr("weight").toTensor();
    const at::Tensor output = model.forward({x}).toTensor();
    const at::Tensor cotangent = torch::linspace(1, 2, 12, torch::kDouble).reshape({3, 4});
    const auto found =
        torch::autograd::grad({output}, {x, weight}, {cotangent}, std::nullopt, false, true);
    return {output.detach(), found[0], found[1]};
}

void check_same(torch::jit::Module& model) {
    torch::jit::Module first = original_model();
    const Gradients want = gradients(first);
    for (int run = 0; run < 4; ++run) {  // TorchScript changes its plan after the first runs
        const Gradients have = gradients(model);
        CHECK(torch::allclose(have.output, want.output, 1e-13));
        REQUIRE(have.x.defined());
        CHECK(torch::allclose(have.x, want.x, 1e-13));
        REQUIRE(have.weight.defined());
        CHECK(torch::allclose(have.weight, want.weight, 1e-13));
    }
}

void check_trains(const std::string& layers) {
    Made made = kernelized(layers);
    INFO(layers << "\n" << made.report.sites.at(0).because);
    REQUIRE(made.report.count(SiteStatus::replaced) == 1);
    check_same(made.model);
}

bool saves_a_node(const torch::jit::Module& model) {
    const tests::Folder folder;
    const auto path = folder.path() / "model.pt";
    model.save(path.string());
    const auto code = runtime::code_of(path);
    return std::any_of(code.begin(), code.end(), [](const runtime::CodeFile& file) {
        return file.text.find("twinkle.autograd_apply") != std::string::npos;
    });
}

const std::string apply_square = layer("Square.apply(x, self.weight, self.eps)");

}  // namespace

TEST_CASE("an autograd.Function gives the gradients of the original") {
    check_trains(square + apply_square);
    // Named in any way, and called through other functions.
    check_trains("class Base(Function):\n    pass\n" +
                 std::string(square).replace(square.find("torch.autograd.Function"), 23, "Base") +
                 "times = Square.apply\ndef through(x, w, f):\n    return times(x, w, f)\n" +
                 layer("through(x, self.weight, self.eps)"));
}

TEST_CASE("what a ctx keeps comes back in backward") {
    const auto function = [](const std::string& forward, const std::string& backward) {
        return "class Fn(Function):\n    @staticmethod\n    def forward(ctx, x, w, f):\n" +
               forward + "    @staticmethod\n    def backward(ctx, g):\n" + backward +
               layer("Fn.apply(x, self.weight, self.eps)");
    };
    // Saved tensors by index; inputs, results in between, and the output itself.
    check_trains(
        function("        y = x * x * f\n        z = y * w\n"
                 "        ctx.save_for_backward(x, w, y, z)\n        return z\n",
                 "        z = ctx.saved_tensors[3]\n"
                 "        gx = 2 * z / ctx.saved_tensors[0]\n"
                 "        return g * gx, (g * ctx.saved_tensors[2]).sum(0), None\n"));
    // A number, a flag, a list, a size, and tensors that are not saved by save_for_backward.
    check_trains(
        function("        ctx.set = (f, True)\n        ctx.sizes = [1, 2]\n"
                 "        ctx.shape = x.shape\n        ctx.pair = (x, [w, w])\n"
                 "        ctx.out = x * x * w * f\n        return ctx.out\n",
                 "        x, ws = ctx.pair\n        f, flag = ctx.set\n"
                 "        k = ctx.sizes[1] if flag else 0\n"
                 "        assert ctx.out.shape[0] == ctx.shape[0]\n"
                 "        return g * k * x * ws[1] * f, (g * x * x * f).sum(0), None\n"));
    // Nothing at all; ctx passed on.
    check_trains("def keep(ctx, x):\n    return x * ctx.f\n" +
                 function("        ctx.f = f\n        ctx.save_for_backward(x, w)\n"
                          "        return keep(ctx, x) * x * w\n",
                          "        (x, w) = ctx.saved_tensors\n"
                          "        return g * 2 * w * keep(ctx, x), "
                          "(g * keep(ctx, x * x)).sum(0), None\n"));
}

TEST_CASE("needs_input_grad tells what is wanted") {
    const std::string layers = R"(
class Fn(Function):
    @staticmethod
    def forward(ctx, x, w, f):
        assert ctx.needs_input_grad[2] == False
        ctx.save_for_backward(x, w)
        ctx.f = f
        return x * x * w * f
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx, gw = None, None
        gf = other = None
        needs_x, needs_w, needs_f = ctx.needs_input_grad
        if ctx.needs_input_grad[0]:
            gx = g * 2 * x
            gx = gx.mul(w) * ctx.f
        if needs_w:
            gw = (g * x * x * ctx.f).sum(0)
        return gx, gw, gf, other
)" + layer("Fn.apply(x, self.weight, self.eps)");
    check_trains(layers);
    // A frozen weight: nothing is computed for it.
    Made made = kernelized(layers);
    made.model.attr("weight").toTensor().set_requires_grad(false);
    const at::Tensor x = torch::ones({3, 4}, torch::kDouble).set_requires_grad(true);
    made.model.forward({x}).toTensor().sum().backward();
    CHECK(torch::allclose(x.grad(), (made.model.attr("weight").toTensor() * 0.5).expand({3, 4})));
    CHECK_FALSE(made.model.attr("weight").toTensor().grad().defined());
}

TEST_CASE("several outputs, one of them not differentiable, another unused") {
    const auto function = [](const std::string& more, const std::string& backward) {
        return "class Fn(Function):\n    @staticmethod\n    def forward(ctx, x, w, f):\n"
               "        y = x * w\n        z = x * f\n        index = x.argmax(-1)\n"
               "        ctx.save_for_backward(x, w)\n        ctx.f = f\n" +
               more +
               "        return y, z, index\n"
               "    @staticmethod\n    def backward(ctx, gy, gz, gi):\n"
               "        x, w = ctx.saved_tensors\n" +
               backward +
               "class Layer(nn.Module):\n    def forward(self, x):\n"
               "        y, z, index = Fn.apply(x, self.weight, self.eps)\n"
               "        unused, _, _ = Fn.apply(x, self.weight, self.eps)\n"
               "        assert index.dim() == 1\n"
               "        a, _, _ = Fn.apply(z, self.weight, 1.0)\n"
               "        return a * x + y * 0 * z\n";
    };
    check_trains(function("        ctx.mark_non_differentiable(index)\n",
                          "        return gy * w + gz * ctx.f, (gy * x).sum(0), None\n"));
    check_trains(
        function("        ctx.mark_non_differentiable(index)\n"
                 "        ctx.set_materialize_grads(False)\n",
                 "        gx, gw = torch.zeros_like(x), torch.zeros_like(w)\n"
                 "        if gy is not None:\n            gx = gx + gy * w\n"
                 "            gw = (gy * x).sum(0)\n"
                 "        if gz is not None:\n            gx = gx + gz * ctx.f\n"
                 "        return gx, gw, None\n"));
}

TEST_CASE("setup_context, optional tensors, defaults, and writing in place") {
    check_trains(R"(
class Fn(Function):
    @staticmethod
    def forward(x, w, f):
        return x * x * w * f
    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, f = inputs
        ctx.save_for_backward(x, w, output)
        ctx.f = f
    @staticmethod
    def backward(ctx, g):
        x, w, y = ctx.saved_tensors
        return g * 2 * y / x, (g * x * x * ctx.f).sum(0), None
)" + layer("Fn.apply(x, self.weight, self.eps)"));
    check_trains(R"(
class Fn(Function):
    @staticmethod
    def forward(ctx, x, w, bias, f, scale: float = 2.0, kind="plain"):
        ctx.save_for_backward(x, w, bias)
        ctx.f = f
        ctx.scale = scale
        y = x * x * w * f * scale * 0.5
        return y if bias is None else y + bias
    @staticmethod
    def backward(ctx, g):
        x, w, bias = ctx.saved_tensors
        g = g * ctx.scale * 0.5
        return g * 2 * x * w * ctx.f, (g * x * x * ctx.f).sum(0), None, None
)" + layer("Fn.apply(x, self.weight, None, self.eps)"));
    check_trains(R"(
class Double(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x
    @staticmethod
    def backward(ctx, g):
        return g * 2
)" + layer("Double.apply(x * 0.5) * x * self.weight * self.eps"));
}

TEST_CASE("gradients arrive contiguous") {
    const std::string layers = R"(
class Fn(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1
    @staticmethod
    def backward(ctx, g):
        assert g.is_contiguous()
        return g
)" + layer("Fn.apply(x * x * self.weight * self.eps)");
    check_trains(layers);
    Made made = kernelized(layers);
    const at::Tensor x = torch::ones({3, 4}, torch::kDouble).set_requires_grad(true);
    CHECK_NOTHROW(made.model.forward({x}).toTensor().sum().backward());  // an expanded gradient
}

TEST_CASE("it trains after save and load, in a copy, and in several threads") {
    Made made = kernelized(square + apply_square);
    std::stringstream out;
    made.model.save(out);
    torch::jit::Module loaded = torch::jit::load(out);
    check_same(loaded);
    torch::jit::Module copy = loaded.deepcopy();
    check_same(copy);
    std::stringstream again;
    loaded.save(again);
    torch::jit::Module twice = torch::jit::load(again);
    check_same(twice);

    torch::jit::Module first = original_model();
    const Gradients want = gradients(first);
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t) {
        threads.emplace_back([&] {
            for (int run = 0; run < 25; ++run) {
                const Gradients have = gradients(loaded);
                wrong += !torch::allclose(have.x, want.x, 1e-13) ||
                         !torch::allclose(have.weight, want.weight, 1e-13);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(wrong == 0);
}

TEST_CASE("a graph is kept on request, used up otherwise, and never differentiated twice") {
    Made made = kernelized(square + apply_square);
    const at::Tensor x = torch::ones({3, 4}, torch::kDouble).set_requires_grad(true);
    const auto forward = [&] { return made.model.forward({x}).toTensor().sum(); };
    at::Tensor loss = forward();
    loss.backward({}, /*retain_graph=*/true);
    const at::Tensor once = x.grad().clone();
    loss.backward();
    CHECK(torch::allclose(x.grad(), 2 * once));
    CHECK_THROWS_WITH(loss.backward(), ContainsSubstring("second time"));
    CHECK_THROWS_WITH(torch::autograd::grad({forward()}, {x}, {}, std::nullopt,
                                            /*create_graph=*/true),
                      ContainsSubstring("Square is a kernel's own and cannot be"));
    // Saved tensors must not change until backward.
    const at::Tensor y = x * 1;
    loss = made.model.forward({y}).toTensor().sum();
    y.detach().mul_(2);
    CHECK_THROWS_WITH(loss.backward(), ContainsSubstring("modified by an inplace operation"));
}

TEST_CASE("what a ctx keeps goes with the graph, its own output too") {
    Made made = kernelized(R"(
class Fn(Function):
    @staticmethod
    def forward(ctx, x, w, f):
        y = x * x * w * f
        ctx.save_for_backward(x, w, y)
        ctx.out = y
        ctx.list = [y, x]
        return y
    @staticmethod
    def backward(ctx, g):
        x, w, y = ctx.saved_tensors
        return g * 2 * ctx.out / ctx.list[1], (g * y / w).sum(0), None
)" + layer("Fn.apply(x, self.weight, self.eps)"));
    REQUIRE(made.report.count(SiteStatus::replaced) == 1);
    check_same(made.model);
    const at::Tensor x = torch::ones({3, 4}, torch::kDouble);
    at::Tensor output = made.model.forward({x}).toTensor();
    REQUIRE(output.requires_grad());
    const c10::weak_intrusive_ptr<at::TensorImpl> watched(output.getIntrusivePtr());
    output.reset();
    CHECK(watched.expired());
}

TEST_CASE("no node where no gradient is wanted") {
    Made made = kernelized(square + apply_square);
    const at::Tensor x = torch::ones({3, 4}, torch::kDouble);
    {
        const torch::NoGradGuard guard;
        CHECK_FALSE(made.model.forward({x}).toTensor().requires_grad());
    }
    {
        const c10::InferenceMode guard;
        CHECK_NOTHROW(made.model.forward({torch::ones({3, 4}, torch::kDouble)}));
    }
    CHECK(made.model.forward({x}).toTensor().requires_grad());
    made.model.attr("weight").toTensor().set_requires_grad(false);
    CHECK_FALSE(made.model.forward({x}).toTensor().requires_grad());
}

TEST_CASE("for inference the forward is compiled as it is") {
    const std::string layers = R"(
class Fn(Function):
    @staticmethod
    def forward(ctx, x, w, f):
        ctx.factor = f
        ctx.kept = None
        ctx.kept = x
        assert not any(ctx.needs_input_grad)
        ctx.save_for_backward(x, w)
        ctx.mark_non_differentiable(x)
        ctx.set_materialize_grads(False)
        return x * x * w * ctx.factor
    @staticmethod
    def backward(ctx, g):
        return not_there(g)
)" + layer("Fn.apply(x, self.weight, self.eps)");
    Made made = kernelized(layers, "inference");
    INFO(made.report.sites.at(0).because);
    REQUIRE(made.report.count(SiteStatus::replaced) == 1);
    torch::jit::Module first = original_model();
    const at::Tensor x = torch::randn({3, 4}, torch::kDouble);
    CHECK(torch::equal(made.model.forward({x}).toTensor(), first.forward({x}).toTensor()));
    CHECK_FALSE(saves_a_node(made.model));
    CHECK(saves_a_node(kernelized(square + apply_square).model));
}

// Flags known at apply decide what forward returns and what backward does.
const std::string flagged = R"(
class Flagged(Function):
    @staticmethod
    def forward(ctx, x, weight, factor, mode, both, extra=None):
        if mode not in ("square", "cube"):
            raise ValueError(mode)
        ctx.save_for_backward(x, weight)
        ctx.factor = factor
        ctx.both = both
        ctx.cube = mode == "cube"
        out = x * x * weight * factor
        return (out, out.detach()) if both else out

    @staticmethod
    def backward(ctx, grad, *rest):
        x, weight = ctx.saved_tensors
        if ctx.cube:
            return not_there(grad)
        unused = rest[0] if ctx.both else None
        assert len(rest) == 1 if ctx.both else not rest
        assert unused is None or unused.dim() == 2
        return (grad * 2 * x * weight * ctx.factor, (grad * x * x * ctx.factor).sum(0), None, None,
                None, None)
)";

TEST_CASE("constant arguments of apply decide what a Function is compiled to") {
    for (const char* call : {"Flagged.apply(x, self.weight, self.eps, 'square', False, None)",
                             "Flagged.apply(x, self.weight, self.eps, 'square', True, None)[0]"}) {
        check_trains(flagged + layer(call));
        Made made = kernelized(flagged + layer(call), "inference");
        INFO(made.report.sites.at(0).because);
        REQUIRE(made.report.count(SiteStatus::replaced) == 1);
        torch::jit::Module first = original_model();
        const at::Tensor x = torch::randn({3, 4}, torch::kDouble);
        CHECK(torch::equal(made.model.forward({x}).toTensor(), first.forward({x}).toTensor()));
    }
    CHECK_THAT(
        why_kept(flagged + layer("Flagged.apply(x, self.weight, self.eps, 'cube', False, None)")),
        ContainsSubstring("not_there"));
}

TEST_CASE("a Function that cannot be a node is refused with its place, and the original stays") {
    const auto function = [](const std::string& forward, const std::string& backward,
                             const std::string& arguments = "x, self.weight, self.eps") {
        return "class Fn(Function):\n" + forward + backward + layer("Fn.apply(" + arguments + ")");
    };
    const std::string forward =
        "    @staticmethod\n    def forward(ctx, x, w, f):\n        ctx.f = f\n"
        "        return x * x * w * f\n";
    const std::string backward =
        "    @staticmethod\n    def backward(ctx, g):\n        return g, None, None\n";
    const auto backward_of = [](const std::string& body) {
        return "    @staticmethod\n    def backward(ctx, g):\n        " + body + "\n";
    };
    CHECK_THAT(why_kept(function(forward, "")),
               ContainsSubstring("layers.py:6: the autograd.Function Fn has no backward"));
    CHECK_THAT(why_kept(function(forward, backward_of("return g, None"))),
               ContainsSubstring("backward returns 2 gradients for 3 arguments"));
    CHECK_THAT(why_kept(function(forward, backward_of("return g, None, None, g"))),
               ContainsSubstring("backward returns Tensor as gradient 4"));
    CHECK_THAT(why_kept(function(forward, backward_of("return g, None, ctx.f"))),
               ContainsSubstring("backward returns float as gradient 3"));
    CHECK_THAT(why_kept(function(forward, backward_of("return g * ctx.other, None, None"))),
               ContainsSubstring("layers.py:13: forward stores nothing as ctx.other"));
    CHECK_THAT(why_kept(function(forward, backward_of("return torch.nothing(g), None, None"))),
               ContainsSubstring("layers.py:13"));
    CHECK_THAT(why_kept(function(forward,
                                 "    @staticmethod\n    @contiguous\n"
                                 "    def backward(ctx, g):\n        return g, None, "
                                 "None\n")),
               ContainsSubstring("the decorator contiguous of backward"));
    CHECK_THAT(why_kept(function(forward, backward, "x, f=self.eps")),
               ContainsSubstring("no named arguments"));
    CHECK_THAT(why_kept(function(forward, backward, "x, self.weight, self.eps, 1")),
               ContainsSubstring("forward takes 3 arguments, apply gives 4"));
    CHECK_THAT(why_kept(function("    @staticmethod\n    def forward(ctx, x, w, f):\n"
                                 "        ctx.f = f\n        ctx.f = x\n        return x\n",
                                 backward)),
               ContainsSubstring("ctx.f is stored as float and as Tensor"));
    CHECK_THAT(why_kept(function("    @staticmethod\n    def forward(ctx, x, w, f):\n"
                                 "        return x, 1\n",
                                 backward)),
               ContainsSubstring("a node of autograd gives tensors"));
    CHECK_THAT(why_kept(function("    @staticmethod\n    def forward(ctx, x, w, f):\n"
                                 "        return x, x\n",
                                 backward)),
               ContainsSubstring("backward takes 1 gradients, forward gives 2 tensors"));
    CHECK_THAT(why_kept(function("    @staticmethod\n    def forward(ctx, x, w, f):\n"
                                 "        return Fn.apply(x, w, f)\n",
                                 backward)),
               ContainsSubstring("Fn.apply is called recursively"));
    CHECK_THAT(why_kept(function(forward, backward) + layer("Fn.vmap(x)")),
               ContainsSubstring("only apply is used"));
}

namespace {

// Registered like operators of kernels: for the CPU, catch-all, and into an output; none of them
// has a gradient.
at::Tensor half(const at::Tensor& x) {
    return x.detach() * 0.5;
}
void half_out(at::Tensor& out, const at::Tensor& x) {
    out.copy_(x.detach() * 0.5);
}

TORCH_LIBRARY(twinkle_training_test, m) {
    m.def("half(Tensor x) -> Tensor");
    m.def("half.scaled(Tensor x, float by) -> Tensor",
          [](const at::Tensor& x, double by) { return x * (0.5 * by); });
    m.def("half_out(Tensor(a!) out, Tensor x) -> ()", &half_out);
}
TORCH_LIBRARY_IMPL(twinkle_training_test, CPU, m) {
    m.impl("half", &half);
}

const std::string halves = R"(
ops = torch.ops.twinkle_training_test
class Half(Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.empty_like(x)
        ops.half_out(out, x)
        return out
    @staticmethod
    def backward(ctx, g):
        return ops.half(g)
)";

}  // namespace

TEST_CASE("operators without an autograd kernel are refused in training, but for a Function's") {
    check_trains(halves + layer("Half.apply(x) * 2 * x * self.weight * self.eps"));
    CHECK_THAT(why_kept(halves + layer("ops.half(x)")),
               ContainsSubstring("twinkle_training_test::half has no autograd kernel"));
    CHECK_THAT(why_kept(halves + "def both(x):\n    return ops.half(x) + Half.apply(x)\n" +
                        layer("both(x)")),
               ContainsSubstring("twinkle_training_test::half has no autograd kernel"));
    CHECK_THAT(why_kept(halves +
                        "def into(x):\n    out = torch.empty_like(x)\n"
                        "    ops.half_out(out, x)\n    return out\n" +
                        layer("into(x)")),
               ContainsSubstring("twinkle_training_test::half_out has no autograd kernel"));
    // An overload composed of differentiable operators.
    check_trains(halves + layer("ops.half(x, 2.0) * x * self.weight * self.eps"));
    CHECK(
        kernelized(halves + layer("ops.half(x)"), "inference").report.count(SiteStatus::replaced) ==
        1);
}

TEST_CASE("a model that calls the operators in ways of its own gets an error") {
    // forward(self, x) calls the operator with one of these as ctx, and x or a constant.
    const auto run = [](std::size_t ctx, const c10::IValue& constant) {
        auto module = tests::module_of("Host", "def forward(self, x):\n    return x\n");
        auto graph = torch::jit::toGraphFunction(module.get_method("forward").function()).graph();
        const torch::jit::WithInsertPoint at_end(graph->return_node());
        torch::jit::Value* argument =
            constant.isNone() ? graph->inputs()[1] : graph->insertConstant(constant);
        torch::jit::Value* arguments = graph->insertNode(graph->createTuple({argument}))->output();
        torch::jit::Value* output =
            graph->insert(c10::Symbol::fromQualString("twinkle::autograd_apply"),
                          {graph->inputs()[ctx], arguments});
        graph->return_node()->replaceInput(0, output);
        module.forward({torch::ones({4})});
    };
    CHECK_THROWS_WITH(run(0, {}), ContainsSubstring("more than 32 deep"));
    CHECK_THROWS_WITH(run(1, {}), ContainsSubstring("takes a ctx object and a tuple"));
    CHECK_THROWS_WITH(run(0, 1), ContainsSubstring("Expected a value of type 'Tensor"));
}

TEST_CASE("a wrong backward is noticed by these tests") {
    std::string wrong = square;
    wrong.replace(wrong.find("grad * 2 *"), 10, "grad * 3 *");
    Made made = kernelized(wrong + apply_square);
    REQUIRE(made.report.count(SiteStatus::replaced) == 1);
    torch::jit::Module first = original_model();
    CHECK_FALSE(torch::allclose(gradients(made.model).x, gradients(first).x, 1e-13));
}
