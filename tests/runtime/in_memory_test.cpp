// Kernelize of models in memory: before the first run and after it, shared instances, hooks,
// copies, and threads.

#include "runtime/graph/sites.h"
#include "runtime/scripted.h"
#include "twinkle/twinkle.h"

#include <sstream>
#include <thread>

// After LibTorch.
#include "catch.h"

using namespace twinkle;

namespace {

namespace jit = torch::jit;

const std::string negating = R"(
import torch.nn as nn
class Negate(nn.Module):
    def forward(self, x):
        return -x * self.weight
)";

jit::Module instance_of(const jit::Module& module) {
    jit::Module copy(module.type()->compilation_unit(), module.type());
    for (std::size_t i = 0; i < module.type()->numAttributes(); ++i) {
        copy._ivalue()->setSlot(i, module._ivalue()->getSlot(i));
    }
    return copy;
}

// root.a(root.b(root.b(x))), where each adds one; `again` is b under a second name.
struct Model {
    std::shared_ptr<jit::CompilationUnit> unit = std::make_shared<jit::CompilationUnit>();
    jit::Module root;

    Model() : root(c10::QualifiedName("__torch__.tests.Root"), unit, true) {
        const auto a = tests::module_of("Plus", "def forward(self, x):\n    return x + 1\n", unit);
        const auto b = instance_of(a);
        root.register_module("a", a);
        root.register_module("b", b);
        root.register_module("again", b);
        root.define(
            "def forward(self, x):\n"
            "    return self.a.forward(self.b.forward(self.again.forward(x)))\n"
            "def other(self, x):\n    return self.b.forward(x)\n");
        root.eval();
    }

    double run(const char* method = "forward") {
        const torch::NoGradGuard no_grad;
        return root.get_method(method)({torch::full({1}, 10.0)}).toTensor().mean().item<double>();
    }

    // Enough runs for the executor to have profiled and optimized.
    void warm_up() {
        for (int i = 0; i < 4; ++i) {
            run();
            run("other");
        }
    }

    double reloaded() const {
        std::stringstream bytes;
        root.save(bytes);
        return jit::load(bytes).forward({torch::full({1}, 10.0)}).toTensor().mean().item<double>();
    }
};

}  // namespace

TEST_CASE("a model is kernelized in place, whether it has run before or not") {
    const tests::Folder folder;
    const Mapping mapping = tests::mapping_to_package(folder, negating, "Negate", "tests.Plus");
    for (const bool warm : {false, true}) {
        Model model;
        auto handle = model.root;  // the same object
        auto method = model.root.get_method("forward");
        if (warm) {
            model.warm_up();
            CHECK(model.run() == Approx(13));
        }
        CHECK(kernelize(model.root, mapping).count(SiteStatus::replaced) == 2);
        for (int i = 0; i < 4; ++i) {
            CHECK(model.run() == Approx(-10));
            CHECK(model.run("other") == Approx(-10));
        }
        CHECK(method({torch::full({1}, 10.0)}).toTensor().mean().item<double>() == Approx(-10));
        CHECK(handle.forward({torch::full({1}, 10.0)}).toTensor().mean().item<double>() ==
              Approx(-10));
        CHECK(model.reloaded() == Approx(-10));
    }
}

TEST_CASE("one of two that share a class, in a model that has run") {
    const tests::Folder folder;
    const Mapping mapping = tests::mapping_to_package(folder, negating, "Negate", "tests.Plus");
    for (const bool warm : {false, true}) {
        Model model;
        if (warm) {
            model.warm_up();
        }
        KernelizeOptions options;
        options.only = {"b"};
        const Report report = kernelize(model.root, mapping, options);
        CHECK(report.count(SiteStatus::replaced) == 1);
        // b under both of its names, a not.
        CHECK(model.run() == Approx(11));
        CHECK(model.run("other") == Approx(-10));
        CHECK(model.reloaded() == Approx(11));
        CHECK(model.root.attr("b").toObject() == model.root.attr("again").toObject());
        CHECK(kernelize(model.root, mapping).count(SiteStatus::replaced) == 1);  // now a
        CHECK(model.run() == Approx(-10));
    }
}

TEST_CASE("nothing to replace leaves a model that has run as it is") {
    const tests::Folder folder;
    Model model;
    model.warm_up();
    const Report report =
        kernelize(model.root, tests::mapping_to_package(folder, negating, "Negate", "tests.Minus"));
    CHECK(report.sites.empty());
    CHECK(model.run() == Approx(13));
}

TEST_CASE("a clone is another model; weights are shared by none of this") {
    const tests::Folder folder;
    const Mapping mapping = tests::mapping_to_package(folder, negating, "Negate", "tests.Plus");
    Model model;
    model.warm_up();
    const auto weight = model.root.attr("a").toModule().attr("weight").toTensor();
    auto clone = model.root.clone();
    kernelize(model.root, mapping);
    CHECK(model.root.attr("a").toModule().attr("weight").toTensor().is_same(weight));
    CHECK(clone.forward({torch::full({1}, 10.0)}).toTensor().mean().item<double>() == Approx(13));
    kernelize(clone, mapping);
    CHECK(clone.forward({torch::full({1}, 10.0)}).toTensor().mean().item<double>() == Approx(-10));
}

TEST_CASE("a site whose forward writes into a buffer is kept") {
    const tests::Folder folder;
    auto unit = std::make_shared<jit::CompilationUnit>();
    auto counting = tests::module_of(
        "Plus", "def forward(self, x):\n    self.weight.add_(1.0)\n    return x + 1\n", unit);
    jit::Module root(c10::QualifiedName("__torch__.tests.Root"), unit, true);
    root.register_module("a", counting);
    root.define("def forward(self, x):\n    return self.a.forward(x)\n");
    const Report report =
        kernelize(root, tests::mapping_to_package(folder, negating, "Negate", "tests.Plus"));
    REQUIRE(report.sites.size() == 1);
    CHECK(report.sites[0].because.find("also changes its weight") != std::string::npos);
}

TEST_CASE("different models are kernelized by different threads at once") {
    const tests::Folder folder;
    const Mapping mapping = tests::mapping_to_package(folder, negating, "Negate", "tests.Plus");
    Model shared;  // its clones live in one compilation unit
    for (int round = 0; round < 20; ++round) {
        std::vector<jit::Module> clones;
        for (int i = 0; i < 2; ++i) {
            clones.push_back(shared.root.clone());
        }
        std::vector<double> results(6, 0);
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < results.size(); ++i) {
            threads.emplace_back([&, i] {
                Model own;
                if (i % 2 == 0) {
                    own.run();
                }
                auto& model = i < clones.size() ? clones[i] : own.root;
                KernelizeOptions options;
                options.exclude = {"a"};
                kernelize(model, mapping, options);
                results[i] =
                    model.forward({torch::full({1}, 10.0)}).toTensor().mean().item<double>();
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        for (const double result : results) {
            CHECK(result == Approx(11));
        }
    }
    CHECK(shared.run() == Approx(13));
}
