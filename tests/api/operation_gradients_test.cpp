// Operations that have gradients of their own.

#include "api/tuned_operation.h"

#include <torch/csrc/autograd/autograd.h>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using tests::When;

namespace {

// y = x * w, whose gradients are its own.
struct Product : Operation<FwdParams, BwdParams> {
    std::string name() const override { return "tests::product"; }
    BwdParams heuristic_backward_cfg(const Invocation& invocation) const override {
        backward = invocation;
        return {{.num_warps = 8}};
    }
    std::vector<BwdParams> backward_config_space(const Invocation&) const override {
        return {{{.num_warps = 2}}};
    }
    at::Tensor run(const at::Tensor& x, const std::optional<at::Tensor>& w, double,
                   const FwdParams&) const {
        return w ? x * *w : x.clone();
    }
    std::vector<at::Tensor> vjp(const std::vector<at::Tensor>& grads, const at::Tensor& x,
                                const std::optional<at::Tensor>& w, double factor,
                                const BwdParams& cfg) const {
        last = cfg;
        // `factor` shows that these gradients are taken, and not those of run.
        return {grads[0] * factor * (w ? *w : at::ones({1})), w ? grads[0] * x : at::Tensor()};
    }
    mutable Invocation backward;
    mutable BwdParams last;
};

}  // namespace

TEST_CASE("an operation with a vjp has its own gradients, chosen for by themselves") {
    ConfigSelectorChain chain{ConfigCache()};
    const Executor executor(chain);
    const Product product;
    at::Tensor x = torch::randn({3, 4});
    at::Tensor w = torch::randn({3, 4});
    CHECK(at::equal(executor(product, x, std::optional(w), 10.0), x * w));
    x.requires_grad_();
    w.requires_grad_();
    CHECK(executor.invocation(product, x, std::optional(w), 10.0).mode == RunMode::forward);
    const at::Tensor y = executor(product, x, std::optional(w), 10.0);
    REQUIRE(y.requires_grad());
    y.sum().backward();
    CHECK(at::allclose(x.grad(), w * 10));
    CHECK(at::allclose(w.grad(), x));
    const at::Tensor alone = executor(product, x, std::nullopt, 5.0);
    x.mutable_grad().zero_();
    alone.sum().backward();
    CHECK(at::allclose(x.grad(), at::full({3, 4}, 5.0)));
    {
        const at::NoGradGuard no_gradients;
        CHECK_FALSE(executor(product, x, std::optional(w), 10.0).requires_grad());
    }
    const at::Tensor again = executor(product, x, std::optional(w), 1.0);
    CHECK_THROWS(torch::autograd::grad({again.sum()}, {x}, {}, true, /*create_graph=*/true));
}

TEST_CASE("backward configurations are measured and remembered apart") {
    ConfigSelectorChain chain(ConfigCache(), PersistentCache::none(), When::first_use);
    const Executor executor(chain);
    const Product product;
    const at::Tensor x = torch::randn({3, 4}).requires_grad_();
    executor(product, x, std::nullopt, 5.0).sum().backward();
    CHECK(chain.cache().size() == 2);
    CHECK(chain.warnings().empty());
}
