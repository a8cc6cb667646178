// apply_rotary against the formula of transformers.
#include <torch/csrc/autograd/autograd.h>

#include "pack_library.h"

namespace {

using namespace pack;

Tensor rotate(const Tensor& x, bool interleaved) {
    if (interleaved)
        return at::stack({-x.slice(-1, 1, x.size(-1), 2), x.slice(-1, 0, x.size(-1), 2)}, -1)
            .flatten(-2);
    const int64_t half = x.size(-1) / 2;
    return at::cat({-x.slice(-1, half), x.slice(-1, 0, half)}, -1);
}

Tensor original(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved) {
    const int64_t r = cos.size(-1);
    const Tensor turned = x.slice(-1, 0, r);
    const Tensor result = turned * cos + rotate(turned, interleaved) * sin;
    return at::cat({result, x.slice(-1, r).to(result.scalar_type())}, -1);
}

void check(const Tensor& x, const Tensor& cos, const Tensor& sin) {
    for (bool interleaved : {false, true}) {
        const Tensor own = original(x, cos, sin, interleaved);
        const Tensor exact =
            original(x.to(at::kDouble), cos.to(at::kDouble), sin.to(at::kDouble), interleaved);
        const auto verdict =
            judge(call("apply_rotary", {x, cos, sin}, {interleaved})[0], own, exact);
        INFO(x.scalar_type() << " " << x.sizes() << " " << x.strides() << ", " << cos.scalar_type()
                             << " " << cos.sizes() << " " << cos.strides() << " " << interleaved
                             << ": " << verdict.text);
        CHECK(verdict.right);
        // The gradient of x is the transposed map of that of the result.
        if (own.scalar_type() != x.scalar_type() || cos.size(-1) == 0) continue;
        const Tensor grad = random(own.sizes(), own.scalar_type());
        const auto gradient = [&](at::ScalarType dtype) {
            const Tensor leaf = x.to(dtype).detach().clone().set_requires_grad(true);
            const Tensor result = original(leaf, cos.to(dtype), sin.to(dtype), interleaved);
            return torch::autograd::grad({result}, {leaf}, {grad.to(dtype)})[0];
        };
        const auto backward = judge(call("apply_rotary", {grad, cos, sin}, {interleaved, true})[0],
                                    gradient(x.scalar_type()), gradient(at::kDouble));
        INFO("gradient: " << backward.text);
        CHECK(backward.right);
    }
}

}  // namespace

TEST_CASE("rotary is right for every dtype, size, part and broadcast", "[isa]") {
    at::manual_seed(11);
    const std::vector<std::pair<int64_t, int64_t>> sizes{{64, 64}, {66, 66}, {80, 32}, {128, 128},
                                                         {6, 2},   {34, 34}, {20, 0}};
    for (auto dtype : dtypes())
        for (auto table : dtypes())
            for (const auto& [n, r] : sizes) {
                if (n == 128 && table != dtype) continue;
                const Tensor cos = random({2, 1, 5, r}, table), sin = random({2, 1, 5, r}, table);
                for (const Tensor& x :
                     {random({2, 5, 3, n}, dtype).transpose(1, 2), random({2, 3, 5, n}, dtype)}) {
                    check(x, cos, sin);
                    check(x, cos.slice(0, 0, 1), sin.slice(0, 0, 1));
                    check(x, cos[0][0], sin[0][0]);
                    check(x, cos[0][0][0], sin[0][0][0]);
                }
            }
}

TEST_CASE("rotary takes tensors of any layout") {
    at::manual_seed(12);
    for (auto dtype : dtypes())
        for (const Tensor& x : layouts(34, dtype)) {
            check(x, random({6, 34}, dtype), random({6, 34}, dtype));
            const Tensor table = random({34, 6}, dtype).t();
            check(x, table, table.flip(0));
            check(x, random({6, 68}, dtype).slice(1, 34), random({1, 34}, dtype).expand({6, 34}));
        }
}

TEST_CASE("rotary refuses what does not fit") {
    const Tensor x = at::ones({2, 3, 8}), cos = at::ones({3, 8});
    const auto of = [](const Tensor& a, const Tensor& b, const Tensor& c) {
        return refusal([&] { call("apply_rotary", {a, b, c}); });
    };
    CHECK(of(x, cos, cos).empty());
    CHECK(has(of(x, at::ones({3, 10}), at::ones({3, 10})), "must be even and at most that of x"));
    CHECK(has(of(x, at::ones({3, 7}), at::ones({3, 7})), "must be even"));
    CHECK(has(of(x, at::ones({4, 8}), at::ones({4, 8})), "does not broadcast"));
    CHECK(has(of(x, at::ones({1, 2, 3, 8}), at::ones({1, 2, 3, 8})), "does not broadcast"));
    CHECK(has(of(x, cos, at::ones({1, 8})), "one shape"));
    CHECK(has(of(x, cos, cos.to(at::kHalf)), "cos is float32 but sin is float16"));
    CHECK(has(of(at::ones({}), at::ones({}), at::ones({})), "need a last dimension"));
}
