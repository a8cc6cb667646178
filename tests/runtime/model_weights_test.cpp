// Which tensors are a model's weights, and of which models they are in no cache.
#include "runtime/verify/model_weights.h"
#include "runtime/verify/call_recorder.h"
#include "runtime/verify/contestant.h"
#include "torchscript.h"

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using namespace twinkle::runtime;

namespace {

torch::jit::Module with_weight(const at::Tensor& weight) {
    torch::jit::Module module("Line");
    module.register_parameter("weight", weight, false);
    module.register_buffer("mean", torch::zeros({3}));
    module.define("def forward(self, x):\n    return x + self.weight[0]\n");
    return module;
}

}  // namespace

TEST_CASE("weights are known by their storage") {
    const at::Tensor weight = torch::ones({4, 3});
    const torch::jit::Module module = with_weight(weight);
    const ModelWeights weights(module);
    CHECK(weights.has(weight));
    CHECK(weights.has(weight.t()));
    CHECK_FALSE(weights.has(weight.clone()));
    CHECK_FALSE(weights.has(module.attr("mean").toTensor()));  // may be written to
    CHECK_FALSE(weights.has(at::Tensor()));
    // Freezing makes constants of them.
    torch::jit::Module eval = with_weight(weight);
    eval.eval();
    const torch::jit::Module frozen = torch::jit::freeze(eval);
    at::Tensor constant;
    for (const torch::jit::Node* node : frozen.get_method("forward").graph()->nodes()) {
        if (node->kind() == c10::prim::Constant &&
            node->output()->type()->isSubtypeOf(*c10::TensorType::get())) {
            constant = node->t(c10::attr::value);
        }
    }
    REQUIRE(constant.defined());
    CHECK(ModelWeights(frozen).has(constant));
    CHECK_FALSE(ModelWeights().has(weight));
    const ModelWeights empty(with_weight(torch::empty({0, 3})));
    CHECK_FALSE(empty.has(torch::empty({0})));
}

TEST_CASE("a model of 64 MiB exceeds the caches") {
    const at::Tensor weight = torch::empty({16, 1 << 20}, torch::kFloat);
    CHECK(ModelWeights(with_weight(weight)).exceed_caches());
    CHECK_FALSE(ModelWeights(with_weight(weight.slice(0, 0, 15).clone())).exceed_caches());
    // Tied weights count once.
    torch::jit::Module tied = with_weight(weight.slice(0, 0, 8).clone());
    tied.register_parameter("tied", tied.attr("weight").toTensor(), false);
    CHECK_FALSE(ModelWeights(tied).exceed_caches());
}

TEST_CASE("recorded calls hold copies of values and the model's own weights") {
    const at::Tensor weight = torch::ones({4, 3}), x = torch::ones({3});
    torch::jit::Module inner("Inner");
    inner.define("def forward(self, x, weight):\n    return x + weight[0]\n");
    torch::jit::Module outer = with_weight(weight);
    outer.register_module("inner", inner);
    outer.define("def outer(self, x):\n    return self.inner.forward(x, self.weight)\n");
    CallRecorder recorder(outer, {"inner"});
    const auto calls =
        recorder.record(1, [&](torch::jit::Module& model) { model.get_method("outer")({x}); });
    const auto& inputs = calls.at("inner").at(0).inputs;
    CHECK_FALSE(inputs.at(0).toTensor().is_alias_of(x));
    CHECK(inputs.at(1).toTensor().is_alias_of(weight));
    const Calls again{{"forward", {inputs, {}}}};
    const auto cold = weights_of(inner, again, recorder.weights());
    REQUIRE(cold.size() == 1);
    CHECK(cold[0].is_alias_of(weight));
}

TEST_CASE("what is evicted keeps its values") {
    const at::Tensor weight = torch::arange(100000);
    evict_from_caches(weight);
    evict_from_caches(weight.slice(0, 7, 9));
    evict_from_caches(at::Tensor());
    evict_from_caches(torch::empty({0}));
    CHECK(weight.equal(torch::arange(100000)));
}
