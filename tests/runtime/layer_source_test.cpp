// Layer source compiled onto a saved class: it either computes the same, or is refused with file,
// line and construct, and leaves the class as it was.

#include "runtime/scripted.h"

#include <sstream>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using namespace twinkle::runtime;

namespace {

const std::string head = R"(
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import nn as again
from . import helpers
from .helpers import scale as times

FACTOR = 2.0

class Layer(nn.Module):
    """A layer."""
    has_backward = False
)";

const std::string helpers = R"(
import torch
AMOUNT = 3
def scale(x, by: float = 2.0):
    return x * by
def shift(x: torch.Tensor, by=1) -> torch.Tensor:
    return inner(x) + by
def inner(x):
    return x * AMOUNT
def endless(x):
    return endless(x)
)";

struct Compiled {
    torch::jit::Module module;
    tl::expected<torch::jit::Function*, std::string> method;
};

// The first parameter, as a tensor.
LayerSignature one_tensor(KernelPackage& package) {
    const auto parameters = layer_parameters(package, "Layer");
    const bool any = parameters && !parameters->empty();
    return {{{any ? parameters->front().name : "x", c10::TensorType::get()}}, {}};
}

// forward's text follows the class header, indented by four.
Compiled compile(const std::string& forward, const AttributeMap& supplied = {}) {
    auto module = tests::module_of("Host",
                                   "def forward(self, x):\n    return x\n"
                                   "def helper(self, x):\n    return x + 1\n");
    const auto package = std::make_shared<KernelPackage>(std::map<std::string, std::string>{
        {"__init__.py", ""}, {"helpers.py", helpers}, {"layers.py", head + forward}});
    const auto compilation =
        std::make_shared<Compilation>(package, module.type()->compilation_unit());
    auto method = compile_layer(*compilation, "Layer", module.type(), "replaced",
                                one_tensor(*package), {supplied, {}, {}});
    return {module, method};
}

at::Tensor run(const std::string& forward, const at::Tensor& x, const AttributeMap& supplied = {}) {
    const Compiled compiled = compile(forward, supplied);
    INFO(forward);
    REQUIRE((compiled.method ? "" : compiled.method.error()) == "");
    return compiled.module.get_method("replaced")({x}).toTensor();
}

std::string error(const std::string& forward) {
    const Compiled compiled = compile(forward);
    INFO(forward);
    REQUIRE_FALSE(compiled.method);
    // The class is as it was: it runs, saves, and takes another attempt.
    CHECK(compiled.module.type()->findMethod("replaced") == nullptr);
    std::stringstream out;
    CHECK_NOTHROW(compiled.module.save(out));
    return compiled.method.error();
}

}  // namespace

TEST_CASE("constructs of layer source compute what Python computes") {
    const at::Tensor x = torch::arange(1, 9, torch::kFloat).reshape({2, 4});
    const auto same = [&](const std::string& body, const at::Tensor& expected) {
        std::string forward = "    def forward(self, x):\n";
        std::istringstream lines(body);
        for (std::string line; std::getline(lines, line);) {
            forward += "        " + line + "\n";
        }
        CHECK(torch::equal(run(forward, x), expected));
    };
    same("return x * self.weight + self.eps", x + 1e-6);
    same("return self.helper(x)", x + 1);
    same("return F.silu(x)", torch::silu(x));
    same("return nn.functional.relu(-x)", torch::relu(-x));
    same("return torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)",
         torch::rsqrt(x.pow(2).mean(-1, true) + 1e-6));
    same("d = x.shape[-1] // 2\nreturn x[..., :d] * x[..., d:]",
         x.slice(-1, 0, 2) * x.slice(-1, 2, 4));
    same("return x.view(x.shape[:-1] + (2, 2)).flatten(1)", x);
    same("return x.to(torch.float64).to(dtype=x.dtype)", x);
    same(
        "y = x[None, :, None].contiguous(memory_format=torch.channels_last)\n"
        "assert y.stride(1) == 1, f\"strides {y.stride()}\"\n"
        "return y.contiguous(memory_format=torch.contiguous_format)[0, :, 0]",
        x);
    same("a, b = x.shape\nreturn x * a + b", x * 2 + 4);
    same("y = x if x.dim() == 2 else -x\nreturn y", x);
    same("if 1 < x.dim() <= 2:\n    x = x + 1\nelse:\n    x = x - 1\nreturn x", x + 1);
    same("for i in range(3):\n    x = x + i\nreturn x", x + 3);
    same("assert x.dim() == 2, f\"got {x.dim()} dimensions\"\nreturn x", x);
    same("if x.dim() != 2:\n    raise ValueError(f\"bad shape {x.shape}\")\nreturn x", x);
    same("if x.dim() not in [1, 3]:\n    x += 1.0\nreturn x", x + 1);
    same("return x * FACTOR * math.sqrt(4.0) + math.pi * 0.0", x * 4);
    same("return times(x)", x * 2);
    same("return times(x, by=4.0)", x * 4);
    same("return helpers.shift(x, by=2)", x * 3 + 2);
    same("sizes = [s for s in x.shape]\nreturn x.reshape(sizes)", x);
    same("return torch.ops.aten.mul(x, x)", x * x);
    same("return torch.ops.aten.mul.Tensor(x, x)", x * x);
    same("y: torch.Tensor = x + 1\nreturn y", x + 1);
    same("return x + 1e-3 + 1_000 - 1000", x + 1e-3 + 1000 - 1000);
    same("return x + float('inf') if False else x", x);
    same("return self.supplied * x if hasattr(self, 'supplied') else x", x);
}

TEST_CASE("parameters without a value keep their default") {
    const at::Tensor x = torch::ones({3});
    CHECK(torch::equal(run("    def forward(self, x, y=None, *, k: float = 3.0):\n"
                           "        if y is not None:\n            x = x + y\n"
                           "        return x * k\n",
                           x),
                       x * 3));
}

TEST_CASE("a lost attribute is answered, one that the class has comes first") {
    const at::Tensor x = torch::ones({4});
    const std::string forward =
        "    def forward(self, x):\n        return x * self.lost + self.eps\n";
    CHECK(torch::allclose(run(forward, x, {{"lost", 3.0}, {"eps", 100.0}}), x * 3 + 1e-6));
    CHECK_THAT(error(forward), ContainsSubstring("has no attribute lost"));
}

TEST_CASE("what TorchScript does not have is refused with file, line and construct") {
    // The body of forward begins on line 16 of the file.
    const auto refused = [](const std::string& body) {
        return error("    def forward(self, x):\n" + body);
    };
    CHECK_THAT(refused("        try:\n            return x\n        except Exception:\n            "
                       "return -x\n"),
               ContainsSubstring("layers.py:16: Try"));
    CHECK_THAT(refused("        f = lambda y: y\n        return f(x)\n"),
               ContainsSubstring("layers.py:16: Lambda"));
    CHECK_THAT(refused("        with torch.autocast(\"cpu\"):\n            return x\n"),
               ContainsSubstring("layers.py:16: With"));
    CHECK_THAT(refused("        return unknown_name(x)\n"), ContainsSubstring("layers.py:16"));
    CHECK_THAT(refused("        return torch.no_such_function(x)\n"),
               ContainsSubstring("no_such_function"));
    CHECK_THAT(refused("        return helpers.endless(x)\n"), ContainsSubstring("recursively"));
    CHECK_THAT(error("    def forward(self, x, y):\n        return x\n"),
               ContainsSubstring("gets no value"));
    CHECK_THAT(error("    def other(self, x):\n        return x\n"),
               ContainsSubstring("no forward"));
    CHECK_THAT(error("    def forward(self, x:\n"), ContainsSubstring("layers.py:"));
}

TEST_CASE("a failed attempt does not stand in the way of the next") {
    auto module = tests::module_of("Host", "def forward(self, x):\n    return x\n");
    const auto attempt = [&](const std::string& forward) {
        const auto package = std::make_shared<KernelPackage>(std::map<std::string, std::string>{
            {"layers.py",
             head.substr(0, head.find("from . ")) + "class Layer(nn.Module):\n" + forward}});
        const auto compilation =
            std::make_shared<Compilation>(package, module.type()->compilation_unit());
        return compile_layer(*compilation, "Layer", module.type(), "replaced", one_tensor(*package),
                             {})
            .has_value();
    };
    CHECK_FALSE(attempt("    def forward(self, x):\n        return x + self.nothing\n"));
    CHECK(attempt("    def forward(self, x):\n        return x + self.eps\n"));
}

TEST_CASE("what a module changes after it has a name is refused, not guessed") {
    for (const std::string later :
         {"Layer.forward = other\n", "setattr(Layer, 'forward', other)\n", "del Layer\n",
          "SCALE = 3.0\n", "for SCALE in (1.0, 2.0):\n    pass\n", "F.relu = other\n",
          "class Box:\n    S = 2.0\nBox.S = 3.0\n"}) {
        const std::string uses = later.starts_with("F.")    ? "F.relu(x)"
                                 : later.starts_with("cla") ? "x * Box.S"
                                                            : "x * SCALE";
        const auto package = std::make_shared<KernelPackage>(std::map<std::string, std::string>{
            {"__init__.py", ""},
            {"layers.py",
             "import torch.nn as nn\nimport torch.nn.functional as F\n"
             "SCALE = 2.0\ndef other(x):\n    return x\n"
             "class Layer(nn.Module):\n    def forward(self, x):\n        return " +
                 uses + "\n" + later}});
        auto module = tests::module_of("Host", "def forward(self, x):\n    return x\n");
        const auto compilation =
            std::make_shared<Compilation>(package, module.type()->compilation_unit());
        INFO(later);
        CHECK_FALSE(compile_layer(*compilation, "Layer", module.type(), "replaced",
                                  {{{"x", c10::TensorType::get()}}, {}}, {}));
    }
}

TEST_CASE("a layer cannot call the forward that it replaces") {
    const Compiled compiled =
        compile("    def forward(self, x):\n        return self.forward(x)\n");
    REQUIRE_FALSE(compiled.method);
    CHECK_THAT(compiled.method.error(), ContainsSubstring("the module that it replaces"));
}
