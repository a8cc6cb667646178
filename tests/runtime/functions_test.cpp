// Calls of functions in scripted models, replaced through the public interface: registered
// implementations of every kind, refusals, and what a saved model keeps.

#include "twinkle/kernel.h"
#include "twinkle/twinkle.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "torchscript.h"

// After LibTorch.
#include "catch.h"

using namespace twinkle;
namespace fs = std::filesystem;

namespace {

constexpr const char* functions = R"(
def add(x: Tensor, y: Tensor, alpha: int = 1) -> Tensor:
    return x + alpha * y
def outer(x: Tensor) -> Tensor:
    return add(x, x, 1) * 2.0
def gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1.0 + torch.erf(x * 0.7071067811865476))
def gate(x: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return a * b
def pair(x: Tensor) -> Tuple[Tensor, Tensor]:
    return x + 1.0, x * 2.0
)";

struct FunctionsOf : torch::jit::Resolver {
    FunctionsOf(std::shared_ptr<torch::jit::CompilationUnit> in, std::string of)
        : unit(std::move(in)), package(std::move(of)) {}
    std::shared_ptr<torch::jit::SugaredValue> resolveValue(
        const std::string& name, torch::jit::GraphFunction& m,
        const torch::jit::SourceRange& loc) override {
        if (auto* function = unit->find_function(c10::QualifiedName(package, name))) {
            return std::make_shared<torch::jit::FunctionValue>(function);
        }
        return torch::jit::nativeResolver()->resolveValue(name, m, loc);
    }
    std::shared_ptr<torch::jit::CompilationUnit> unit;
    std::string package;
};

// Functions in the form in which Python's scripted ones are saved: `my_pkg.math_ops.add`.
void define(const std::shared_ptr<torch::jit::CompilationUnit>& unit, const std::string& package,
            const std::string& text) {
    const std::string prefix = "__torch__." + package;
    unit->define(c10::QualifiedName(prefix), text, std::make_shared<FunctionsOf>(unit, prefix),
                 nullptr);
}

// A root with forward and two instances of one class, all of which call functions.
torch::jit::Module model_with(const std::string& forward, const std::string& block) {
    auto unit = std::make_shared<torch::jit::CompilationUnit>();
    define(unit, "my_pkg.math_ops", functions);
    define(unit, "other.math_ops", "def add(x: Tensor, y: Tensor) -> Tensor:\n    return x - y\n");
    const auto resolver = std::make_shared<FunctionsOf>(unit, "__torch__.my_pkg.math_ops");
    const auto type = [&](const char* name) {
        torch::jit::Module module(c10::QualifiedName(name), unit, true);
        module.register_parameter("weight", torch::ones({1}), false);
        return module;
    };
    auto first = type("__torch__.tests.Block");
    first.define(block, resolver);
    torch::jit::Module second(unit, first.type());
    second._ivalue()->setSlot(0, torch::ones({1}));
    for (std::size_t i = 1; i < first.type()->numAttributes(); ++i) {
        second._ivalue()->setSlot(i, first._ivalue()->getSlot(i));
    }
    auto root = type("__torch__.tests.Root");
    root.register_module("a", first);
    root.register_module("b", second);
    root.define(forward, resolver);
    root.eval();
    return root;
}

torch::jit::Module plain_model() {
    return model_with(
        "def forward(self, x):\n    return add(self.a.forward(x), self.b.forward(x), 1)\n",
        "def forward(self, x):\n    return outer(x) + add(x, self.weight, alpha=3)\n");
}

double output(const torch::jit::Module& model) {
    torch::jit::Module copy = model;
    return copy.forward({torch::full({1}, 2.0)}).toTensor().item<double>();
}

torch::jit::Module saved_and_loaded(const torch::jit::Module& model) {
    std::stringstream bytes;
    model.save(bytes);
    return torch::jit::load(bytes);
}

const SiteReport& site(const Report& report, const std::string& name) {
    for (const SiteReport& one : report.sites) {
        if (one.site == name) {
            return one;
        }
    }
    FAIL("no site " << name);
    return report.sites.front();
}

FunctionKernel add_by(FunctionImplementation implementation) {
    FunctionKernel kernel{.func_name = "add", .target_module = "my_pkg.math_ops"};
    kernel.func_impl = std::move(implementation);
    return kernel;
}

struct Registered {
    Registry registry;
    torch::jit::Module model = plain_model();

    explicit Registered(FunctionKernel kernel) {
        registry.register_function_kernel(std::move(kernel));
    }
    Report kernelize(ModelOptions options = {}) {
        options.registry = &registry;
        return kernelize_model(model, options);
    }
};

std::string kept_because(FunctionKernel kernel, ModelOptions options = {}) {
    Registered one(std::move(kernel));
    const double before = output(one.model);
    const Report report = one.kernelize(std::move(options));
    CHECK(report.count(SiteStatus::replaced) == 0);
    CHECK(output(one.model) == before);
    return report.sites.at(0).because;
}

}  // namespace

TEST_CASE("a function is replaced wherever it is called, also by functions") {
    const tests::Folder folder;
    const auto file =
        folder.write("fast.py", "def fast(x, y, alpha=1):\n    return x + alpha * y + 1000\n");
    Registered one(add_by(file.string() + ":fast"));
    CHECK(output(one.model) == Approx(26));  // 13 each
    const Report report = one.kernelize();
    // outer: 2 * (4 + 1000); beside it 5 + 1000; of both blocks, and 1000 for their sum
    CHECK(output(one.model) == Approx(26 + 2 * 3000 + 1000));
    CHECK(output(saved_and_loaded(one.model)) == Approx(7026));
    CHECK(report.count(SiteStatus::replaced) == 4);
    const SiteReport& inner = site(report, "my_pkg.math_ops.outer:my_pkg.math_ops.add");
    CHECK(inner.kind == "function");
    CHECK(inner.of == "my_pkg.math_ops.add");
    CHECK(inner.kernel == "fast.py: fast");
    CHECK(site(report, "a.forward:my_pkg.math_ops.add").status == SiteStatus::replaced);
    CHECK(site(report, "forward:my_pkg.math_ops.add").status == SiteStatus::replaced);
}

TEST_CASE("one call of several, of instances that share a class") {
    const tests::Folder folder;
    const auto file =
        folder.write("fast.py", "def fast(x, y, alpha=1):\n    return x + alpha * y + 1000\n");
    Registered one(add_by(file.string() + ":fast"));
    const Report report = one.kernelize({.only = {"b.*"}});
    CHECK(report.count(SiteStatus::replaced) == 1);
    CHECK(output(one.model) == Approx(1026));
    // Again, with the rest: what is replaced stays.
    const Report again = one.kernelize();
    CHECK(site(again, "b.forward:my_pkg.math_ops.add").because == "it is kernelized already");
    CHECK(output(one.model) == Approx(7026));
}

TEST_CASE("functions of one name in two modules") {
    Registry registry;
    FunctionKernel kernel = add_by([](const at::Tensor& x, const at::Tensor& y) { return x * y; });
    kernel.target_module = "other.math_ops";
    registry.register_function_kernel(kernel);
    auto unit_model = plain_model();
    const auto unit = unit_model.type()->compilation_unit();
    unit_model.define("def both(self, x):\n    return add(x, x)\n",
                      std::make_shared<FunctionsOf>(unit, "__torch__.other.math_ops"));
    CHECK(apply_function_kernel(unit_model, {.registry = &registry}) ==
          std::vector<std::string>{"other.math_ops.add"});
    CHECK(output(unit_model) == Approx(26));
    CHECK(unit_model.get_method("both")({torch::full({1}, 3.0)}).toTensor().item<double>() == 9);
}

TEST_CASE("a C++ function, by its types, and an object with load()") {
    SECTION("called with tensors and numbers") {
        Registered one(add_by([](const at::Tensor& x, const at::Tensor& y, std::int64_t alpha) {
            return x + alpha * y + 1000;
        }));
        one.kernelize();
        CHECK(output(one.model) == Approx(7026));
    }
    SECTION("the last one registered counts, in models that come later") {
        Registered one(
            add_by([](const at::Tensor& x, const at::Tensor&, std::int64_t) { return x; }));
        one.kernelize();
        const double first = output(one.model);
        one.registry.register_function_kernel(
            add_by([](const at::Tensor& x, const at::Tensor&, std::int64_t) { return x * 0; }));
        auto later = plain_model();
        kernelize_model(later, {.registry = &one.registry});
        CHECK(output(later) == 0);
        CHECK(output(one.model) == first);
    }
    SECTION("an object") {
        struct Repo : FunctionRepository {
            Implementation load() override {
                ++loads;
                return {"mine",
                        [](std::vector<c10::IValue> given, const Implementation::Keywords&) {
                            return c10::IValue(given[0].toTensor() * 0);
                        }};
            }
            int loads = 0;
        };
        const auto repo = std::make_shared<Repo>();
        FunctionKernel kernel{.func_name = "add", .target_module = "my_pkg.math_ops"};
        kernel.repo = repo;
        kernel.mode = "compile";
        Registered one(kernel);
        CHECK_THAT(one.kernelize({.mode = "compile"}).sites.at(0).because,
                   ContainsSubstring("can_torch_compile = False"));
        CHECK(repo->loads == 0);
        repo->can_torch_compile = true;
        CHECK(one.kernelize({.mode = "compile"}).count(SiteStatus::replaced) == 4);
        CHECK(repo->loads == 1);
        CHECK(output(one.model) == 0);
    }
}

TEST_CASE("C++ functions and objects with load() in training") {
    const auto plain = [](const at::Tensor& x, const at::Tensor& y, std::int64_t alpha) {
        return x + alpha * y * 2;
    };
    const auto gradient = [](torch::jit::Module model) {
        const at::Tensor x = torch::full({1}, 2.0).set_requires_grad(true);
        model.forward({x}).toTensor().backward();
        return x.grad().item<double>();
    };
    SECTION("a C++ function") {
        Registered one(add_by(plain));
        const Report report = one.kernelize({.mode = "training"});
        INFO(report.sites.at(0).because);
        CHECK(report.count(SiteStatus::replaced) == 4);
        CHECK(gradient(one.model) == Approx(21));
    }
    SECTION("an object, by what it says") {
        struct Repo : FunctionRepository {
            Implementation load() override {
                return {"mine",
                        [](std::vector<c10::IValue> given, const Implementation::Keywords&) {
                            return c10::IValue(given[0].toTensor() * 5);
                        }};
            }
        };
        const auto repo = std::make_shared<Repo>();
        FunctionKernel kernel{.func_name = "add", .target_module = "my_pkg.math_ops"};
        kernel.repo = repo;
        Registered one(kernel);
        CHECK(one.kernelize({.mode = "training"}).count(SiteStatus::replaced) == 4);
        repo->has_backward = false;
        CHECK_THAT(kept_because(kernel, {.mode = "training"}),
                   ContainsSubstring("has_backward = False"));
    }
    SECTION("one that records no gradients") {
        const Implementation other(
            "raw",
            [](std::vector<c10::IValue> given, const Implementation::Keywords&) {
                return given[0];
            },
            std::nullopt, /*differentiable=*/false);
        CHECK_THAT(kept_because(add_by(other), {.mode = "training"}),
                   ContainsSubstring("raw records no gradients"));
    }
}

TEST_CASE("a C++ function with other parameters is refused before the model is changed") {
    Registered one(add_by([](const at::Tensor& x, std::vector<double>, std::optional<bool>,
                             std::tuple<std::int64_t, std::string>) { return x; }));
    const double before = output(one.model);
    try {
        one.kernelize();
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::refused);
        CHECK_THAT(error.details().what,
                   ContainsSubstring("my_pkg.math_ops.add takes 4 arguments, not 3"));
        CHECK_THAT(error.details().why,
                   ContainsSubstring("add(Tensor x, Tensor y, int alpha=1)") &&
                       ContainsSubstring("(Tensor, float[], bool?, (int, str))"));
    }
    CHECK(output(one.model) == before);
}

TEST_CASE("strict: functions that are asked for and not registered") {
    Registry registry;
    registry.register_function_kernel(
        add_by([](const at::Tensor& x, const at::Tensor&, std::int64_t) { return x * 0; }));
    const auto apply = [&](FunctionOptions options) {
        options.registry = &registry;
        auto model = plain_model();
        return apply_function_kernel(model, options);
    };
    CHECK(apply({.target_module = "my_pkg.math_op"}).empty());
    for (FunctionOptions options :
         {FunctionOptions{.target_module = "my_pkg.math_op"}, FunctionOptions{.func_name = "ad"}}) {
        options.strict = true;
        try {
            apply(options);
            FAIL("no error");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::refused);
            CHECK_THAT(error.details().hint, ContainsSubstring("did you mean"));
        }
    }
    CHECK(apply({.target_module = "my_pkg.math_ops", .strict = true}) ==
          std::vector<std::string>{"my_pkg.math_ops.add"});
}

TEST_CASE("an operator, and one that writes into a result it is given") {
    auto model = model_with(
        "def forward(self, x):\n    return gelu(self.a.forward(x)) + gate(self.b.forward(x))\n",
        "def forward(self, x):\n    return x\n");
    const at::Tensor x = torch::linspace(-1.9, 2, 12).view({3, 4});
    SECTION("of LibTorch") {
        Registry registry;
        FunctionKernel kernel{.func_name = "gelu", .target_module = "my_pkg.math_ops"};
        kernel.func_impl = "op:aten::gelu";
        registry.register_function_kernel(kernel);
        const Report report = kernelize_model(model, {.registry = &registry});
        CHECK(report.sites.at(0).kernel == "aten::gelu");
        CHECK(report.count(SiteStatus::replaced) == 1);
    }
    SECTION("out = f(x) for x = f(x)") {
        const tests::Folder folder;
        const auto file =
            folder.write("out.py",
                         "import torch\n"
                         "def gelu_into(out, x):\n    out.copy_(torch.nn.functional.gelu(x))\n"
                         "def gate_into(out, x):\n"
                         "    a, b = x.chunk(2, -1)\n"
                         "    torch.ops.aten.copy_(out, a * b)\n"
                         "    return out\n");
        Registry registry;
        for (const std::string name : {"gelu", "gate"}) {
            FunctionKernel kernel{.func_name = name, .target_module = "my_pkg.math_ops"};
            kernel.func_impl = file.string() + ":" + name + "_into";
            registry.register_function_kernel(kernel);
        }
        auto separate = model_with("def forward(self, x):\n    return gelu(self.a.forward(x))\n",
                                   "def forward(self, x):\n    return gate(x)\n");
        const at::Tensor before = separate.forward({x}).toTensor();
        const Report report = kernelize_model(separate, {.registry = &registry});
        CHECK(report.count(SiteStatus::replaced) == 3);
        CHECK(at::allclose(saved_and_loaded(separate).forward({x}).toTensor(), before));
    }
}

TEST_CASE("what cannot stand for the function is refused with the reason") {
    const tests::Folder folder;
    const auto from = [&](const std::string& text) {
        return add_by(folder.write("fast.py", text).string() + ":fast");
    };
    CHECK_THAT(kept_because(from("def fast(y, x, alpha=1):\n    return x + y\n")),
               ContainsSubstring("in another order"));
    CHECK_THAT(kept_because(from("def fast(x):\n    return x\n")),
               ContainsSubstring("no parameter for the argument y"));
    CHECK_THAT(kept_because(from("def fast(x, y, alpha, beta):\n    return x + y\n")),
               ContainsSubstring("the call has nothing for its parameter beta"));
    CHECK_THAT(kept_because(from("def fast(x, y, alpha):\n    return [x, y]\n")),
               ContainsSubstring("it returns List[Tensor], the function Tensor"));
    CHECK_THAT(kept_because(from("def fast(x, y, alpha):\n    return x.add_(y)\n")),
               ContainsSubstring("it writes into x, which the function does not"));
    CHECK_THAT(kept_because(from("def fast(x, y, alpha):\n    return eval('x')\n")),
               ContainsSubstring("fast.py:2"));
    CHECK_THROWS_AS(kept_because(from("def slow(x):\n    return x\n")), Error);
}

TEST_CASE("a parameter that the replacement does not have, where the call passes its default") {
    const tests::Folder folder;
    const auto file = folder.write("fast.py", "def fast(x, y):\n    return x + y + 1000\n");
    Registered one(add_by(file.string() + ":fast"));
    const Report report = one.kernelize();
    CHECK(report.count(SiteStatus::replaced) == 2);  // alpha = 1; in a block it is 3
    CHECK_THAT(site(report, "a.forward:my_pkg.math_ops.add").because,
               ContainsSubstring("no parameter for the argument alpha"));
}

TEST_CASE("devices, modes, fallbacks and strictness of functions") {
    const auto implementation = [](const at::Tensor& x, const at::Tensor&, std::int64_t) {
        return x;
    };
    FunctionKernel kernel = add_by(implementation);
    kernel.device = "cuda";
    CHECK_THAT(kept_because(kernel), ContainsSubstring("has no kernel for cpu, only for cuda"));
    kernel.device = "cpu";
    kernel.mode = "training";
    CHECK_THAT(kept_because(kernel, {.mode = "inference+compile"}),
               ContainsSubstring("is not registered for inference+compile"));
    Registered strict(kernel);
    CHECK_THROWS_AS(strict.kernelize({.mode = "inference+compile", .strict = true}), Error);
    CHECK_THROWS_AS(strict.kernelize({.mode = "inference+compile", .use_fallback = false}), Error);

    kernel.func_name = "ad";
    Registered typo(kernel);
    const Report report = typo.kernelize();
    CHECK_THAT(report.warnings.at(0),
               ContainsSubstring("no call of the function my_pkg.math_ops.ad is in this model; the "
                                 "nearest is my_pkg.math_ops.add"));
    CHECK_THROWS_AS(typo.kernelize({.strict = true}), Error);
}

TEST_CASE("registrations that say too much or too little are refused") {
    Registry registry;
    const auto refused = [&](const FunctionKernel& kernel) {
        CHECK_THROWS_AS(registry.register_function_kernel(kernel), Error);
    };
    FunctionKernel kernel{.func_name = "add", .target_module = "m"};
    refused(kernel);
    kernel.func_impl = "fast.py";
    refused(kernel);
    kernel.func_impl = "nofile.py:fast";
    refused(kernel);
    kernel.func_impl = "op:aten::add";
    kernel.repo_id = "org/name";
    refused(kernel);
    kernel.repo_id.clear();
    kernel.mode = "sometimes";
    refused(kernel);
    kernel.mode = "train";
    kernel.device = "toaster";
    refused(kernel);
    kernel.device = "metal";
    registry.register_function_kernel(kernel);
}

TEST_CASE("a function or layer of a kernel in a folder") {
    const tests::Folder folder;
    folder.write("__init__.py", "from .ops import plus\n");
    folder.write("ops.py", "def plus(x, y, alpha=1):\n    return x + alpha * y + 1000\n");
    folder.write("layers.py",
                 "import torch.nn as nn\n"
                 "class Plus(nn.Module):\n"
                 "    def forward(self, x, y, alpha):\n"
                 "        return x + alpha * y + 1000\n"
                 "class Stateful(nn.Module):\n"
                 "    def forward(self, x, y, alpha):\n"
                 "        return x + self.weight\n");
    FunctionKernel kernel{.func_name = "add", .target_module = "my_pkg.math_ops"};
    kernel.repo_path = folder.path();
    for (const char* name : {"plus", "Plus"}) {
        kernel.kernel_func_name = name;
        Registered one(kernel);
        const Report report = one.kernelize();
        INFO(report.to_json());
        CHECK(report.count(SiteStatus::replaced) == 4);
        CHECK(output(saved_and_loaded(one.model)) == Approx(7026));
    }
    kernel.kernel_func_name = "Stateful";
    CHECK_THAT(kept_because(kernel), ContainsSubstring("weight"));
    kernel.kernel_func_name = "Missing";
    CHECK_THROWS_AS(Registered(kernel).kernelize(), Error);
}

// `outer` is called by both blocks and calls `add`; the blocks call nothing else.
torch::jit::Module nested_model() {
    return model_with("def forward(self, x):\n    return self.a.forward(x) + self.b.forward(x)\n",
                      "def forward(self, x):\n    return outer(x) * self.weight\n");
}

FunctionKernel outer_by(FunctionImplementation implementation) {
    FunctionKernel kernel = add_by(std::move(implementation));
    kernel.func_name = "outer";
    return kernel;
}

const FunctionImplementation plus_1000 = [](const at::Tensor& x, const at::Tensor& y,
                                            std::int64_t alpha) { return x + alpha * y + 1000; };
const FunctionImplementation times_4 = [](const at::Tensor& x) { return x * 4; };
const std::string inner = "my_pkg.math_ops.outer:my_pkg.math_ops.add";

std::vector<std::string> sites_of(const Report& report) {
    std::vector<std::string> names;
    for (const SiteReport& one : report.sites) {
        names.push_back(one.site);
    }
    return names;
}

TEST_CASE("what stands in a function is no site where nothing calls that any more") {
    const std::string a = "a.forward:my_pkg.math_ops.outer";
    const std::string b = "b.forward:my_pkg.math_ops.outer";
    Registered one(add_by(plus_1000));
    one.model = nested_model();
    SECTION("nothing around it is replaced") {
        CHECK(sites_of(one.kernelize()) == std::vector{inner});
        CHECK(output(one.model) == Approx(4016));
    }
    SECTION("its function is") {
        one.registry.register_function_kernel(outer_by(times_4));
        const Report report = one.kernelize({.strict = true});
        CHECK(sites_of(report) == std::vector{a, b});
        CHECK(report.count(SiteStatus::replaced) == 2);
        CHECK_THAT(site(report, a).because, ContainsSubstring(", with its " + inner));
        CHECK(output(one.model) == Approx(16));
    }
    SECTION("its function is, but not everywhere") {
        one.registry.register_function_kernel(outer_by(times_4));
        const Report report = one.kernelize({.exclude = {"b.*"}});
        CHECK(site(report, inner).status == SiteStatus::replaced);
        CHECK(site(report, a).because.find("with its") == std::string::npos);
        CHECK(output(one.model) == Approx(8 + 2008));
    }
    SECTION("where it could not have been replaced") {
        FunctionKernel elsewhere = add_by(plus_1000);
        elsewhere.device = "cuda";
        Registered two(elsewhere);
        two.model = nested_model();
        CHECK_THROWS_AS(two.kernelize({.use_fallback = false}), Error);
        two.registry.register_function_kernel(outer_by(times_4));
        CHECK(sites_of(two.kernelize({.use_fallback = false})) == std::vector{a, b});
        two.model = nested_model();
        CHECK_THROWS_AS(two.kernelize({.use_fallback = false, .exclude = {a}}), Error);
    }
}

TEST_CASE("what a layer computes is no site, in functions and in modules") {
    const tests::Folder folder;
    folder.write("__init__.py", "");
    folder.write("layers.py",
                 "import torch.nn as nn\n"
                 "class Times(nn.Module):\n    def forward(self, x):\n        return x * 4\n");
    Registered one(add_by(plus_1000));
    one.model = nested_model();
    LayerKernel layer{.kernel_name = "Block", .repo_path = folder.path(), .layer_name = "Times"};
    layer.classes = {"tests.Block"};
    one.registry.register_layer_kernel(layer);
    SECTION("a function that only the module called") {
        const Report report = one.kernelize({.strict = true});
        CHECK(sites_of(report) == std::vector<std::string>{"a", "b"});
        CHECK_THAT(site(report, "b").because, ContainsSubstring(", with its " + inner));
        CHECK(output(one.model) == Approx(16));
    }
    SECTION("a function that another module calls, too") {
        const Report report = one.kernelize({.strict = true, .exclude = {"b"}});
        CHECK(sites_of(report) == std::vector<std::string>{"a", "b", inner});
        CHECK(site(report, inner).status == SiteStatus::replaced);
        CHECK(output(one.model) == Approx(8 + 2008));
    }
    SECTION("what was to be kept") {
        one.registry.register_function_kernel(outer_by(times_4));
        const Report report = one.kernelize({.exclude = {"*.forward:*"}});
        CHECK(sites_of(report) == std::vector<std::string>{"a", "b"});
    }
}

TEST_CASE("function files that are strange are refused with a reason, or right") {
    const tests::Folder folder;
    const auto because = [&](const std::string& text) {
        return kept_because(add_by(folder.write("fast.py", text).string() + ":fast"));
    };
    CHECK_THAT(because("def fast(x, y, alpha):\n    return fast(x, y, alpha)\n"),
               ContainsSubstring("fast.py:2"));
    CHECK_THAT(because("def fast(x, y, alpha):\n    return other(x, y, alpha)\n"
                       "def other(x, y, alpha):\n    return fast(x, y, alpha)\n"),
               ContainsSubstring("fast.py:"));
    CHECK_THAT(because("def fast(*args):\n    return args[0]\n"), ContainsSubstring("argument x"));
    CHECK_THAT(because("def fast(x, *, y, alpha, gamma):\n    return x\n"),
               ContainsSubstring("nothing for its parameter gamma"));
    CHECK_THAT(because("def fast(**given):\n    return given['x']\n"),
               ContainsSubstring("argument x"));
    CHECK_THAT(because("def fast(x, x, alpha):\n    return x\n"), ContainsSubstring("argument y"));
    CHECK_THAT(because("def fast(x, y, alpha):\n    yield x\n"), ContainsSubstring("fast.py:2"));
    CHECK_THROWS_AS(because("async def fast(x, y, alpha):\n    return x\n"), Error);
    std::string deep = "x";
    for (int i = 0; i < 100; ++i) {
        deep = "(" + deep + " + y)";
    }
    Registered one(add_by(
        folder
            .write("fast.py", "def fast(x, y, alpha=1, *rest, **more):\n    return " + deep + "\n")
            .string() +
        ":fast"));
    INFO(one.kernelize().to_json());
    CHECK(output(one.model) > 26);
}

TEST_CASE("functions that call each other very many times over") {
    // Inlined, f40 would have 2 to the power of 40 additions.
    std::string text = "def f0(x: Tensor) -> Tensor:\n    return x + 1\n";
    for (int i = 1; i <= 40; ++i) {
        const std::string below = "f" + std::to_string(i - 1);
        text += "def f" + std::to_string(i) + "(x: Tensor) -> Tensor:\n    return " + below + "(" +
                below + "(x))\n";
    }
    auto model = plain_model();
    const auto unit = model.type()->compilation_unit();
    std::size_t at = 0;  // one by one: each is defined where the next is compiled
    for (std::size_t next = 0; at < text.size(); at = next) {
        next = std::min(text.find("def ", at + 1), text.size());
        define(unit, "my_pkg.towers", text.substr(at, next - at));
    }
    model.define("def tower(self, x):\n    return f40(x)\n",
                 std::make_shared<FunctionsOf>(unit, "__torch__.my_pkg.towers"));
    const tests::Folder folder;
    const auto file = folder.write("fast.py",
                                   "def into(out, x):\n    out.copy_(x)\n"
                                   "def one(x):\n    return x\n");
    for (const std::string name : {"into", "one"}) {
        Registry registry;
        FunctionKernel kernel{.func_name = "f40", .target_module = "my_pkg.towers"};
        kernel.func_impl = file.string() + ":" + name;
        registry.register_function_kernel(kernel);
        const Report report = kernelize_model(model, {.registry = &registry});
        REQUIRE(report.sites.size() == 1);
        CHECK(report.count(SiteStatus::replaced) == (name == "one" ? 1 : 0));
        if (name == "into") {
            CHECK_THAT(report.sites[0].because, ContainsSubstring("its code is too large"));
        }
    }
    CHECK(model.get_method("tower")({torch::ones({1})}).toTensor().item<double>() == 1);
}

TEST_CASE("many calls in one method") {
    std::string forward = "def forward(self, x):\n";
    for (int i = 0; i < 3000; ++i) {
        forward += "    x = add(x, x, " + std::to_string(i % 3) + ")\n";
    }
    auto model = model_with(forward + "    return x\n", "def forward(self, x):\n    return x\n");
    Registry registry;
    registry.register_function_kernel(
        add_by([](const at::Tensor& x, const at::Tensor&, std::int64_t) { return x; }));
    CHECK(kernelize_model(model, {.registry = &registry}).count(SiteStatus::replaced) == 3000);
    CHECK(output(model) == 2);
}

TEST_CASE("without a model, functions are pending for those that come later") {
    const tests::Folder folder;
    const auto file = folder.path() / "model.pt";
    plain_model().save(file.string());
    Registry registry;
    registry.register_function_kernel(
        add_by([](const at::Tensor& x, const at::Tensor&, std::int64_t) { return x * 0; }));
    kernelize_model(std::nullopt, {.device = "cpu", .registry = &registry});
    std::vector<std::string> said;
    LoadOptions options;
    options.explain = [&](const std::string& text) { said.push_back(text); };
    CHECK(output(load(file, options)) == 0);
    CHECK(said.size() == 4);
    const auto [model, report] = kernelize(file, Mapping());
    CHECK(output(model) == 0);
    CHECK(report.count(SiteStatus::replaced) == 4);
    // These functions replace what the mapping does not: no warning of that.
    for (const std::string& warning : report.warnings) {
        INFO(warning);
        CHECK(warning.find("C++ function of this program") != std::string::npos);
    }

    const Registry empty;
    kernelize_model(std::nullopt, {.registry = &empty});
    CHECK(output(load(file)) == Approx(26));
}

namespace {

constexpr const char* model_variable = "TWINKLE_TEST_MODEL";

// The message that `read` throws; empty: none.
std::string refusal(const std::function<torch::jit::Module()>& read) {
    try {
        read();
        return "";
    } catch (const std::exception& error) {
        return error.what();
    }
}

}  // namespace

TEST_CASE("a saved model never takes another program's C++ function for its own") {
    const tests::Folder folder;
    const fs::path file = folder.path() / "model.pt";
    Registered one(
        add_by([](const at::Tensor& x, const at::Tensor& y, int64_t) { return x + y + 1; }));
    const Report report = one.kernelize();
    REQUIRE(report.count(SiteStatus::replaced) > 0);
    CHECK(std::any_of(report.warnings.begin(), report.warnings.end(), [](const auto& warning) {
        return warning.find("my_pkg.math_ops.add is a C++ function") == 0;
    }));
    const double value = output(one.model);
    one.model.save(file.string());
    // The process that has registered it can load it again.
    CHECK(output(torch::jit::load(file.string())) == value);
    CHECK(output(load(file)) == value);
    // Another process registers a function of that name before it loads the model.
    ::setenv(model_variable, file.c_str(), 1);
    const std::string self = fs::read_symlink("/proc/self/exe").string();
    CHECK(std::system(("'" + self + "' '[another_program]' > '" +
                       (folder.path() / "said").string() + "' 2>&1")
                          .c_str()) == 0);
    ::unsetenv(model_variable);
}

// Run by the test above, as a program of its own.
TEST_CASE("another program loads a model that has a C++ function", "[.another_program]") {
    const char* file = std::getenv(model_variable);
    if (file == nullptr) {
        return;
    }
    Registered own(
        add_by([](const at::Tensor& x, const at::Tensor& y, int64_t) { return x + y + 100; }));
    REQUIRE(own.kernelize().count(SiteStatus::replaced) > 0);
    const std::string what = "the C++ function my_pkg.math_ops.add of another program";
    CHECK(refusal([&] { return load(file); }).find(what) != std::string::npos);
    CHECK(refusal([&] { return torch::jit::load(file); }).find(what) != std::string::npos);
    std::ifstream in(file, std::ios::binary);
    CHECK(refusal([&] { return torch::jit::load(in); }).find(what) != std::string::npos);
}
