// Packages of AOTInductor as kernels that a program registers. The code is
// tests/runtime/fake_package.c.

#include "api/package.h"

#include <iterator>
#include <nlohmann/json.hpp>

// After LibTorch.
#include "catch.h"
#include "stored_zip.h"

using namespace twinkle;
using tests::only_site;

namespace {

// 2 * x, if y is 0.
std::string fake_package() {
    const nlohmann::json said = {
        {"operator", "twice(Tensor x, Tensor y) -> Tensor"},
        {"sizes", {{"rows", {1, 100}}}},
        {"inputs",
         {{{"dtype", "float32"}, {"sizes", {"rows", 8}}}, {{"dtype", "float32"}, {"sizes", {8}}}}}};
    const nlohmann::json metadata = {{"AOTI_DEVICE_KEY", "cpu"}, {"twinkle", said.dump()}};
    std::ifstream code(TWINKLE_FAKE_PACKAGE, std::ios::binary);
    const std::string model = "p/data/aotinductor/model/";
    return tests::zip_of({{model + "a.wrapper.so", {std::istreambuf_iterator<char>(code), {}}},
                          {model + "a.wrapper_metadata.json", metadata.dump()}});
}

}  // namespace

TEST_CASE("a registered pattern is replaced by a package") {
    const tests::Folder folder;
    const auto file = folder.write("twice.pt2", fake_package());
    folder.write("formulas.py", "def twice(x, y):\n    return x * 2 + y\n");
    Registry registry;
    registry.register_pattern_kernel(
        {.name = "twice",
         .pattern = {(folder.path() / "formulas.py").string() + ":twice"},
         .func_impl = "package:" + file.string()});
    auto model =
        tests::module_of("Twice", "def forward(self, x, y):\n    return torch.relu(x * 2 + y)\n");
    const Report report = kernelize_model(model, {.mode = "inference", .registry = &registry});
    const auto site = only_site(report);
    INFO(site.because);
    CHECK(site.kernel.find("twice.pt2") != std::string::npos);
    const torch::NoGradGuard no_grad;
    const auto x = torch::randn({5, 8});
    CHECK(torch::equal(model.forward({x, torch::zeros({8})}).toTensor(), torch::relu(2 * x)));
    // It computes as the package does, and no longer what the formula says.
    CHECK_THROWS(model.forward({x, torch::full({8}, 2.0)}));
}

TEST_CASE("text that names no package is refused when it is registered") {
    Registry registry;
    CHECK_THROWS_WITH(
        registry.register_function_kernel(
            {.func_name = "add", .target_module = "my_pkg", .func_impl = "package:norm.so"}),
        ContainsSubstring("package:file.pt2"));
}
