// Kernelize through the public interface, with kernels made of Python text: selection, conditions,
// separated classes, reports. tests/cli drives the bundled kernels and real models.

#include "runtime/scripted.h"
#include "twinkle/twinkle.h"

#include <sstream>

// After LibTorch.
#include "catch.h"

using namespace twinkle;

namespace {

const std::string negating = R"(
import torch.nn as nn
class Negate(nn.Module):
    def forward(self, x):
        return -x * self.eps * 1e6
)";

// Two instances of one class, called one after the other.
torch::jit::Module model_of_two() {
    auto unit = std::make_shared<torch::jit::CompilationUnit>();
    auto first = tests::module_of("Plus", "def forward(self, x):\n    return x + 1\n", unit);
    torch::jit::Module second(unit, first.type());
    for (std::size_t i = 0; i < first.type()->numAttributes(); ++i) {
        second._ivalue()->setSlot(i, first._ivalue()->getSlot(i));
    }
    torch::jit::Module root(c10::QualifiedName("__torch__.tests.Root"), unit, true);
    root.register_module("a", first);
    root.register_module("b", second);
    root.define("def forward(self, x):\n    return self.b.forward(self.a.forward(x))\n");
    root.eval();
    return root;
}

struct Made {
    Report report;
    at::Tensor output;  // for x = 10, from the model saved and loaded again
};

Made made(const Mapping& mapping, const KernelizeOptions& options = {}) {
    auto model = model_of_two();
    Made result;
    result.report = kernelize(model, mapping, options);
    std::stringstream bytes;
    model.save(bytes);
    result.output = torch::jit::load(bytes).forward({torch::full({1}, 10.0)}).toTensor();
    return result;
}

double value(const Made& result) {
    return result.output.item<double>();
}

const SiteReport& site(const Report& report, const std::string& path) {
    for (const SiteReport& one : report.sites) {
        if (one.site == path) {
            return one;
        }
    }
    FAIL("no site " << path);
    return report.sites.front();
}

}  // namespace

TEST_CASE("every instance of the class is replaced, and the report names each") {
    const tests::Folder folder;
    const Made result = made(tests::mapping_to_package(folder, negating, "Negate", "tests.Plus"));
    CHECK(value(result) == Approx(10));  // twice negated
    CHECK(result.report.count(SiteStatus::replaced) == 2);
    CHECK(site(result.report, "a").kernel == "package: Negate");
    CHECK(site(result.report, "a").of == "tests.Plus");
    CHECK(result.report.mode == "inference");
    CHECK(result.report.device == "cpu");
    CHECK(result.report.warnings.empty());
}

TEST_CASE("a model that is kernelized already is left as it is") {
    const tests::Folder folder;
    const Mapping mapping = tests::mapping_to_package(folder, negating, "Negate", "tests.Plus");
    auto model = model_of_two();
    kernelize(model, mapping, {.exclude = {"b"}});
    std::stringstream bytes;
    model.save(bytes);
    auto again = torch::jit::load(bytes);
    const Report report = kernelize(again, mapping);
    CHECK(site(report, "a").because.find("already") != std::string::npos);
    CHECK(site(report, "b").status == SiteStatus::replaced);
    std::stringstream twice;
    again.save(twice);
    CHECK(torch::jit::load(twice).forward({torch::full({1}, 10.0)}).toTensor().item<double>() ==
          Approx(10));
}

TEST_CASE("one of two instances is treated alone") {
    const tests::Folder folder;
    const Mapping mapping = tests::mapping_to_package(folder, negating, "Negate", "tests.Plus");
    KernelizeOptions options;
    options.exclude = {"b"};
    const Made without_b = made(mapping, options);
    CHECK(value(without_b) == Approx(-10 + 1));
    CHECK(site(without_b.report, "b").because == "excluded");
    options = {};
    options.only = {"b*"};
    CHECK(value(made(mapping, options)) == Approx(-11));
    Mapping named = mapping;
    named.layers[0].modules = {"a"};
    CHECK(value(made(named)) == Approx(-9));
}

TEST_CASE("conditions on attributes decide per instance") {
    const tests::Folder folder;
    Mapping mapping = tests::mapping_to_package(folder, negating, "Negate", "tests.Plus");
    mapping.layers[0].when["eps"] = 1e-6;
    CHECK(made(mapping).report.count(SiteStatus::replaced) == 2);
    mapping.layers[0].when["eps"] = 1e-5;
    const Made other = made(mapping);
    CHECK(other.report.count(SiteStatus::kept) == 2);
    CHECK(site(other.report, "a").because.find("eps is not 1e-05") != std::string::npos);
    mapping.layers[0].when = {{"missing", true}};
    CHECK(site(made(mapping).report, "a").because.find("lost the attribute missing") !=
          std::string::npos);
}

TEST_CASE("modes are searched in their order and flags exclude") {
    const tests::Folder folder;
    Mapping mapping = tests::mapping_to_package(folder, negating, "Negate", "tests.Plus");
    const auto because = [&](const std::string& registered, bool backward, bool compiles,
                             const std::string& asked) {
        LayerCandidate& candidate = mapping.layers[0].candidates[0];
        candidate.mode = registered;
        candidate.has_backward = backward;
        candidate.can_torch_compile = compiles;
        KernelizeOptions options;
        options.mode = asked;
        const Made result = made(mapping, options);
        return site(result.report, "a").status == SiteStatus::replaced
                   ? "replaced"
                   : site(result.report, "a").because;
    };
    CHECK(because("inference", false, false, "inference") == "replaced");
    CHECK(because("training", true, false, "inference") == "replaced");
    CHECK(because("fallback", true, false, "training") == "replaced");
    CHECK(because("inference", true, true, "training").find("not registered for training") !=
          std::string::npos);
    CHECK(because("fallback", false, false, "train").find("has_backward") != std::string::npos);
    CHECK(because("fallback", true, false, "compile").find("can_torch_compile") !=
          std::string::npos);
    CHECK(because("inference+compile", true, true, "inference") == "replaced");
    CHECK_THROWS_AS(because("inference", true, true, "speed"), Error);
}

TEST_CASE("a report has every candidate in the order of preference") {
    const tests::Folder folder;
    Mapping mapping = tests::mapping_to_package(folder, negating, "Negate", "tests.Plus");
    const LayerCandidate any = mapping.layers[0].candidates[0];
    auto& candidates = mapping.layers[0].candidates;
    candidates = {any, any, any, any, any};
    candidates[0].device = "cuda";
    candidates[1].mode = "training";
    candidates[1].has_backward = false;
    candidates[2].capability = {0, 10};
    candidates[3].mode = "inference";
    MappedLayer other = mapping.layers[0];
    other.kernel_name = "Other";
    other.modules = {"a"};
    other.candidates = {any};
    mapping.layers.push_back(other);
    using Reasons = std::vector<std::string>;
    const auto reasons = [](const SiteReport& site) {
        Reasons found;
        for (const CandidateReport& one : site.candidates) {
            CHECK(one.kernel == "package: Negate");
            found.push_back(one.because);
        }
        return found;
    };
    const std::string later = "it comes after package: Negate";
    const std::string elsewhere = "the binding names other instances (modules)";
    const std::string cuda = "it is for cuda";
    const std::string range = "its capability range does not contain this device";
    const Report report = made(mapping).report;
    CHECK(site(report, "a").because == "Negate, inference on cpu");
    CHECK(reasons(site(report, "a")) == Reasons{"", later, later, later, cuda, range});
    CHECK(reasons(site(report, "b")) == Reasons{"", later, later, cuda, range, elsewhere});
    KernelizeOptions training;
    training.mode = "training";
    const std::string no_backward = "it has no backward (has_backward = False)";
    const std::string inference = "it is registered for inference";
    const Report trained = made(mapping, training).report;
    CHECK(reasons(site(trained, "b")) ==
          Reasons{"", cuda, no_backward, range, inference, elsewhere});
    mapping.layers[0].candidates.resize(1);
    CHECK(reasons(site(made(mapping).report, "b")) == Reasons{cuda, elsewhere});
    CHECK(site(made(mapping).report, "a").status == SiteStatus::replaced);
    KernelizeOptions excluded;
    excluded.exclude = {"b"};
    CHECK(site(made(mapping, excluded).report, "b").candidates.empty());
}

TEST_CASE("a kept site is an error where its fallback is not allowed") {
    const tests::Folder folder;
    Mapping mapping = tests::mapping_to_package(folder, negating, "Negate", "tests.Plus");
    mapping.layers[0].candidates[0].device = "cuda";
    CHECK(site(made(mapping).report, "a").because.find("only for cuda") != std::string::npos);
    KernelizeOptions strict;
    strict.fallback = {};
    try {
        made(mapping, strict);
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::refused);
        CHECK(error.details().where == "a");
    }
}

TEST_CASE("a layer that does not fit keeps the original, with the reason") {
    const tests::Folder folder;
    const auto because = [&](const std::string& layers) {
        const Made result = made(tests::mapping_to_package(folder, layers, "Negate", "tests.Plus"));
        CHECK(value(result) == Approx(12));
        return site(result.report, "b").because;
    };
    const std::string head = "import torch.nn as nn\nclass Negate(nn.Module):\n";
    CHECK(because(head + "    def forward(self, x, y):\n        return x\n")
              .find("takes 1 inputs, the layer 2") != std::string::npos);
    CHECK(because(head + "    def forward(self, x):\n        return x.shape[0]\n")
              .find("returns int") != std::string::npos);
    CHECK(because(head + "    def forward(self, x):\n        return self.nothing\n")
              .find("layers.py:4") != std::string::npos);
    CHECK(because("import torch.nn as nn\n").find("no layer Negate") != std::string::npos);
}

TEST_CASE("a changed file of the kernel is refused before anything is used") {
    const tests::Folder folder;
    const Mapping mapping = tests::mapping_to_package(folder, negating + "# unique to this test\n",
                                                      "Negate", "tests.Plus");
    folder.write("layers.py", negating + "# changed in this test\n");
    try {
        made(mapping);
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::verification);
        CHECK(error.details().where.find("layers.py") != std::string::npos);
    }
}

TEST_CASE("a name that binds nothing is reported with the line that would bind it") {
    const tests::Folder folder;
    const Made result = made(tests::mapping_to_package(folder, negating, "Negate", "tests.plus"));
    REQUIRE(result.report.warnings.size() == 2);
    CHECK(result.report.warnings[0].find("binds no class") != std::string::npos);
    CHECK(result.report.warnings[1].find("nothing was replaced") != std::string::npos);
    Mapping near = tests::mapping_to_package(folder, negating, "Negate", "nothing");
    near.layers[0].kernel_name = "Pluss";
    CHECK(made(near).report.warnings[0].find("tests.Plus") != std::string::npos);
}

TEST_CASE("globs that match nothing and mappings for another LibTorch are said") {
    const tests::Folder folder;
    Mapping mapping = tests::mapping_to_package(folder, negating, "Negate", "tests.Plus");
    mapping.target["torch"] = "1.13";
    KernelizeOptions options;
    options.exclude = {"zzz*"};
    const Report report = made(mapping, options).report;
    REQUIRE(report.warnings.size() == 2);
    CHECK(report.warnings[0].find("LibTorch 1.13") != std::string::npos);
    CHECK(report.warnings[1] == "no site matches exclude 'zzz*'");
}

TEST_CASE("a binding without candidates has the resolver's reason") {
    const tests::Folder folder;
    Mapping mapping = tests::mapping_to_package(folder, negating, "Negate", "tests.Plus");
    mapping.layers[0].candidates.clear();
    CHECK(site(made(mapping).report, "a").because == "nothing is mapped to Negate");
    mapping.decisions.push_back({"layer Negate", std::nullopt, "the target has no cuda", {}});
    CHECK(site(made(mapping).report, "a").because == "the target has no cuda");
}

TEST_CASE("DISABLE_KERNEL_MAPPING leaves the model as it is") {
    const tests::Folder folder;
    ::setenv("DISABLE_KERNEL_MAPPING", "1", 1);
    const Made result = made(tests::mapping_to_package(folder, negating, "Negate", "tests.Plus"));
    ::unsetenv("DISABLE_KERNEL_MAPPING");
    CHECK(value(result) == Approx(12));
    CHECK(result.report.count(SiteStatus::kept) == 2);
}

TEST_CASE("fallback sets are read, and unknown words refused") {
    CHECK((parse_fallbacks({"true"}) == default_fallbacks()));
    CHECK(parse_fallbacks({"false"}).empty());
    CHECK(parse_fallbacks({"all"}).contains(Fallback::cannot_load));
    CHECK((parse_fallbacks({"no-layer", "cannot-compile"}) ==
           FallbackSet{Fallback::no_layer, Fallback::cannot_compile}));
    CHECK_THROWS_AS(parse_fallbacks({"no-lair"}), Error);
}
