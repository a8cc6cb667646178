// Calls that a trace has inlined, replaced in memory: by C++ functions, in a model that has run.

#include "runtime/model/inputs.h"
#include "twinkle/twinkle.h"

#include <torch/torch.h>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using namespace twinkle::runtime;

namespace {

const std::string folder = std::string(TWINKLE_SOURCE_DIR) + "/examples/tiny-llama/";
const std::string llama = "transformers.models.llama.modeling_llama";

at::Tensor result_of(const torch::jit::Module& model, const Inputs& inputs) {
    const torch::NoGradGuard no_grad;
    return model.get_method("forward")(inputs.positional, inputs.named).toTensor();
}

at::Tensor rotated(const at::Tensor& x) {
    const auto halves = x.chunk(2, -1);
    return at::cat({-halves[1], halves[0]}, -1);
}

}  // namespace

TEST_CASE("A C++ function stands for calls that a trace has inlined", "[functions]") {
    Registry registry;
    registry.register_function_kernel(
        {.func_name = "rotate_half", .target_module = llama, .func_impl = rotated});
    const Inputs inputs = read_inputs(folder + "inputs.pt");
    const Inputs other = read_inputs(folder + "inputs_other.pt");
    torch::jit::Module model = torch::jit::load(folder + "traced.pt");
    const at::Tensor before = result_of(model, other);

    FunctionOptions options;
    options.registry = &registry;
    CHECK(apply_function_kernel(model, options).empty());  // without inputs
    options.inputs = inputs.positional;
    CHECK(apply_function_kernel(model, options) ==
          std::vector<std::string>{llama + ".rotate_half"});
    CHECK(at::allclose(result_of(model, other), before, 1e-4, 1e-5));

    ModelOptions again;
    again.registry = &registry;
    again.inputs = inputs.positional;
    const Report report = kernelize_model(model, again);
    CHECK(report.sites.size() == 4);
    CHECK(report.count(SiteStatus::replaced) == 0);
}

TEST_CASE("A wrong C++ function leaves a model that has run as it was", "[functions]") {
    Registry registry;
    registry.register_function_kernel(
        {.func_name = "rotate_half", .target_module = llama, .func_impl = [](const at::Tensor& x) {
             return x.roll({x.size(-1) / 2}, {-1});
         }});
    const Inputs inputs = read_inputs(folder + "inputs.pt");
    torch::jit::Module model = torch::jit::load(folder + "traced.pt");
    const at::Tensor before = result_of(model, inputs);
    ModelOptions options;
    options.registry = &registry;
    options.inputs = inputs.positional;
    const Report report = kernelize_model(model, options);
    REQUIRE(report.sites.size() == 4);
    for (const SiteReport& site : report.sites) {
        CHECK(site.status == SiteStatus::kept);
        CHECK(site.because.find("its error is") != std::string::npos);
    }
    CHECK(at::equal(result_of(model, inputs), before));
    options.inputs = {at::zeros({2})};  // no tokens
    CHECK_THROWS_AS(kernelize_model(model, options), Error);
    CHECK(at::equal(result_of(model, inputs), before));
}
