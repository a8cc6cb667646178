// Models in memory, made for another dtype and another device than their code names.

#include "runtime/scripted.h"
#include "twinkle/twinkle.h"

// After LibTorch.
#include "catch.h"

using namespace twinkle;

namespace {

namespace jit = torch::jit;

// As in a float32 trace: the cast up and the one back are the same constant, and the value returned
// beside the result is the copy that was the same tensor then.
jit::Module norm_and_projection() {
    return tests::module_of(
        "Layer",
        "def norm(self, x: Tensor):\n"
        "    h = torch.to(x, 6)\n"
        "    y = h * torch.rsqrt(torch.mean(torch.pow(h, 2), [-1], True) + 0.1)\n"
        "    return torch.to(y, 6) * self.weight, h\n"
        "def forward(self, x: Tensor):\n"
        "    first = x * self.weight\n"
        "    n, again = self.norm(first)\n"
        "    mask = torch.zeros([4], dtype=6, device=torch.device(\"cpu\"))\n"
        "    return torch.matmul(n + mask, torch.outer(self.weight, "
        "self.weight)) + again\n");
}

KernelizeOptions in(const std::string& dtype) {
    KernelizeOptions options;
    options.dtype = dtype;
    options.device = "cpu";
    return options;
}

}  // namespace

TEST_CASE("a model in memory is converted in place, also after it has run") {
    const torch::NoGradGuard no_grad;
    jit::Module model = norm_and_projection();
    const at::Tensor x = torch::arange(8, torch::kFloat).reshape({2, 4}) / 7;
    const at::Tensor before = model.forward({x}).toTensor();
    const Report report = kernelize_with(model, Mapping{}, in("bfloat16"));
    CHECK(report.dtype == "bfloat16");
    CHECK(report.dtype_constants.converted == 1);
    CHECK(report.dtype_constants.rewritten == 2);  // the way back, and the mask
    CHECK(report.dtype_constants.methods ==
          std::map<std::string, std::size_t>{{"tests.Layer.forward", 1}, {"tests.Layer.norm", 1}});
    CHECK(report.device_constants.found == 1);
    CHECK(report.device_constants.rewritten == 0);  // it is that device
    const at::Tensor after = model.forward({x.to(torch::kBFloat16)}).toTensor();
    CHECK(after.scalar_type() == torch::kBFloat16);
    CHECK(torch::allclose(after.to(torch::kFloat), before, 0.03, 0.03));
    // And back: no bfloat16 is left.
    kernelize_with(model, Mapping{}, in("float32"));
    const at::Tensor back = model.forward({x}).toTensor();
    CHECK(back.scalar_type() == torch::kFloat);
    CHECK(torch::allclose(back, before, 1e-5, 1e-5));
}

TEST_CASE("a device that is named gives way to that of the weights") {
    const torch::NoGradGuard no_grad;
    jit::Module model = norm_and_projection();
    KernelizeOptions options;
    options.device = "cuda:1";
    const Report report = kernelize_with(model, Mapping{}, options);
    CHECK(report.device == "cuda");
    CHECK(report.device_constants.rewritten == 1);
    CHECK(report.device_constants.named == std::vector<std::string>{"cpu"});
    CHECK(report.warnings.empty());
    CHECK(model.forward({torch::ones({2, 4})}).toTensor().is_cpu());
    model.setattr("weight", torch::ones({4}, torch::kMeta));
    CHECK(model.forward({torch::ones({2, 4}, torch::kMeta)}).toTensor().is_meta());
}

TEST_CASE("nothing asked for, nothing changed, and what stands in the way is said") {
    jit::Module model = norm_and_projection();
    const auto text = model.get_method("forward").graph()->toString();
    const Report report = kernelize_with(model, Mapping{});
    CHECK(report.device_constants.found == 1);
    CHECK(report.dtype_constants.found == 2);
    CHECK(report.dtype_constants.named == std::vector<std::string>{"float32"});
    CHECK(model.get_method("forward").graph()->toString() == text);
    CHECK_FALSE(report.dtype);
}

TEST_CASE("an unknown dtype is refused before anything is changed") {
    jit::Module model = norm_and_projection();
    CHECK_THROWS_AS(kernelize_with(model, Mapping{}, in("int8")), Error);
    CHECK(model.attr("weight").toTensor().scalar_type() == torch::kFloat);
}
