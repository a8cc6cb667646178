// Patterns in models that are designed to break them: through the public interface, and limits of
// the search.

#include "runtime/patterns/pattern_sites.h"
#include "twinkle/twinkle.h"

#include <filesystem>
#include <fstream>
#include <sstream>

// After LibTorch.
#include "catch.h"

using namespace twinkle;

namespace {

namespace fs = std::filesystem;

constexpr const char* formulas = R"(
import torch

def gate(x, y, scale: float):
    return torch.sigmoid(x) * y * scale

def norm(x, eps: float):
    total = x.abs().mean(-1, keepdim=True) + eps
    return x / total, total

def sums(a, b, c, d, e, f, g, h, i, j, k, l):
    return ((a + b) + (c + d)) + ((e + f) + (g + h)) + ((i + j) + (k + l)) * 2.0
)";

fs::path formula_file() {
    const fs::path file = fs::temp_directory_path() / "twinkle_patterns_test.py";
    std::ofstream(file) << formulas;
    return file;
}

PatternKernel pattern(const std::string& name) {
    return {.name = name, .pattern = {formula_file().string() + ":" + name}};
}

Registry& with_gate(Registry& registry) {
    PatternKernel kernel = pattern("gate");
    kernel.func_impl = [](const at::Tensor& x, const at::Tensor& y, double scale) {
        return x.sigmoid() * y * scale + 100;
    };
    registry.register_pattern_kernel(std::move(kernel));
    return registry;
}

torch::jit::Module module_of(const std::string& code) {
    torch::jit::Module module("__torch__.tests.Root");
    module.register_parameter("weight", torch::ones({1}), false);
    module.register_attribute("training", c10::BoolType::get(), false);
    module.define(code);
    return module;
}

Report kernelized(torch::jit::Module& model, const Registry& registry) {
    return kernelize_model(model, {.mode = "inference", .device = "cpu", .registry = &registry});
}

double output(torch::jit::Module& model, double x) {
    return model.forward({torch::full({1}, x)}).toTensor().item<double>();
}

}  // namespace

TEST_CASE("a C++ function stands for a formula, wherever it is computed", "[patterns]") {
    Registry registry;
    auto model = module_of(
        "def inner(self, x, y, s: float):\n"
        "    return s * (y * torch.sigmoid(x))\n"
        "def forward(self, x):\n"
        "    if bool(x.sum() > 0):\n"
        "        x = self.inner(x, self.weight, 2.0)\n"
        "    return x\n");
    const Report report = kernelized(model, with_gate(registry));
    // (x * y) * scale rounds in another order than scale * (y * x), and counts as the same.
    REQUIRE(report.sites.size() == 1);
    CHECK(report.sites[0].site == "inner:twinkle_patterns.gate");
    CHECK(report.sites[0].kind == "pattern");
    CHECK(report.sites[0].status == SiteStatus::replaced);
    CHECK(output(model, -1) == -1);
    CHECK(output(model, 1) > 100);
}

TEST_CASE("a place lies in one block", "[patterns]") {
    Registry registry;
    auto model = module_of(
        "def forward(self, x):\n"
        "    y = torch.sigmoid(x)\n"
        "    if bool(x.sum() > 0):\n"
        "        y = y * self.weight * 2.0\n"
        "    return y\n");
    CHECK(kernelized(model, with_gate(registry)).sites.empty());
}

TEST_CASE("a value that is no constant is handed over", "[patterns]") {
    Registry registry;
    auto model = module_of(
        "def forward(self, x):\n"
        "    scale = float(x.sum())\n"
        "    return torch.sigmoid(x) * self.weight * scale\n");
    CHECK(kernelized(model, with_gate(registry)).count(SiteStatus::replaced) == 1);
    CHECK(output(model, 3) ==
          Approx(100 + 3 * torch::sigmoid(torch::full({1}, 3.0)).item<double>()));
}

TEST_CASE("results that are used early, late and not at all", "[patterns]") {
    for (const std::string rest : {"a + b", "a", "a * (b + 1.0)"}) {
        Registry registry;
        PatternKernel kernel = pattern("norm");
        kernel.func_impl = [](const at::Tensor& x, double eps) {
            const at::Tensor total = x.abs().mean(-1, true) + eps;
            return std::make_tuple(x / total, total);
        };
        registry.register_pattern_kernel(std::move(kernel));
        const std::string code =
            "def forward(self, x):\n"
            "    b = x.abs().mean(-1, keepdim=True) + 0.5\n"
            "    c = b * 3.0\n"
            "    a = x / b\n"
            "    return c + " +
            rest + "\n";
        auto original = module_of(code);
        auto model = module_of(code);
        CHECK(kernelized(model, registry).count(SiteStatus::replaced) == 1);
        CHECK(output(model, 3) == Approx(output(original, 3)));
    }
}

TEST_CASE("what reads a result cannot go into the same call", "[patterns]") {
    Registry registry;
    PatternKernel kernel = pattern("norm");
    kernel.func_impl = [](const at::Tensor& x, double eps) { return std::make_tuple(x, x + eps); };
    registry.register_pattern_kernel(std::move(kernel));
    auto model = module_of(
        "def forward(self, x):\n"
        "    y = torch.sigmoid(x)\n"
        "    return y / (y.abs().mean(-1, keepdim=True) + float(y.sum()))\n");
    CHECK(kernelized(model, registry).count(SiteStatus::replaced) == 1);
}

TEST_CASE("looking for formulas ends", "[patterns]") {
    Registry registry;
    SECTION("calls that double at every level") {
        std::string code = "def f0(self, x):\n    return torch.sigmoid(x)\n";
        for (int i = 1; i <= 60; ++i) {
            const std::string inner = "self.f" + std::to_string(i - 1);
            code += "def f" + std::to_string(i) + "(self, x):\n    return " + inner + "(" + inner +
                    "(x))\n";
        }
        auto model = module_of(code + "def forward(self, x):\n    return self.f60(x)\n");
        const Report report = kernelized(model, with_gate(registry));
        REQUIRE_FALSE(report.warnings.empty());
        CHECK(report.warnings[0].find("more than") != std::string::npos);
    }
    SECTION("operands that can be exchanged in too many ways") {
        PatternKernel kernel = pattern("sums");
        kernel.func_impl = "op:aten::relu";
        registry.register_pattern_kernel(std::move(kernel));
        std::string code = "def forward(self, x):\n    y = x\n";
        for (int i = 0; i < 2000; ++i) {
            code += "    y = (y + x) + (x + y)\n";
        }
        auto model = module_of(code + "    return y * 2.0\n");
        const Report report = kernelized(model, registry);
        CHECK(report.sites.empty());
    }
}

TEST_CASE("pattern kernels that make no sense", "[patterns]") {
    Registry registry;
    PatternKernel kernel = pattern("gate");
    CHECK_THROWS_AS(registry.register_pattern_kernel(kernel), Error);  // nothing stands for it
    kernel.func_impl = "op:aten::mul";
    kernel.pattern = {};
    CHECK_THROWS_AS(registry.register_pattern_kernel(kernel), Error);
    kernel.pattern = {"nowhere.py:gate"};
    CHECK_THROWS_AS(registry.register_pattern_kernel(kernel), Error);
    kernel.pattern = {"gate"};
    CHECK_THROWS_AS(registry.register_pattern_kernel(kernel), Error);
    kernel = pattern("gate");
    kernel.name = "_2";
    kernel.func_impl = "op:aten::mul";
    CHECK_THROWS_AS(registry.register_pattern_kernel(kernel), Error);
}
