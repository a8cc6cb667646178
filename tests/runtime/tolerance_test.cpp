// Errors allowed beside the original's own: the difference that two correct orders of summation may
// have, and no more.

#include "runtime/scripted.h"
#include "runtime/verify/comparison.h"
#include "runtime/verify/reduction_length.h"

#include <cmath>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using namespace twinkle::runtime;

namespace {

std::int64_t terms_of(const std::string& code, std::vector<c10::IValue> inputs) {
    auto model = tests::module_of("Host", code);
    return longest_reduction([&] { model.forward(std::move(inputs)); });
}

// A plain loop: the worst order of summation.
at::Tensor one_by_one(const at::Tensor& x, float epsilon) {
    at::Tensor result = x.clone();
    for (std::int64_t row = 0; row < x.size(0); ++row) {
        float* values = result.data_ptr<float>() + row * x.size(1);
        float sum = 0;
        for (std::int64_t i = 0; i < x.size(1); ++i) {
            sum += values[i] * values[i];
        }
        const float scale = 1.0F / std::sqrt(sum / static_cast<float>(x.size(1)) + epsilon);
        for (std::int64_t i = 0; i < x.size(1); ++i) {
            values[i] *= scale;
        }
    }
    return result;
}

at::Tensor rms_norm(const at::Tensor& x, double epsilon) {
    return x * (x.pow(2).mean(-1, true) + epsilon).rsqrt();
}

}  // namespace

TEST_CASE("the longest sum of a computation is found") {
    const at::Tensor x = at::rand({3, 5, 7});
    CHECK(terms_of("def forward(self, x):\n    return x * 2 + x\n", {x}) == 1);
    CHECK(terms_of("def forward(self, x):\n    return x.mean(-1)\n", {x}) == 7);
    CHECK(terms_of("def forward(self, x):\n    return x.sum()\n", {x}) == 105);
    CHECK(terms_of("def forward(self, x):\n    return x.pow(2).mean(1, True) + x.sum(-1, True)\n",
                   {x}) == 7);
    CHECK(terms_of("def forward(self, x):\n    return x.softmax(1)\n", {x}) == 5);
    CHECK(terms_of("def forward(self, x):\n    return torch.matmul(x, x.transpose(1, 2))\n", {x}) ==
          7);
    CHECK(terms_of("def forward(self, x):\n    return torch.layer_norm(x, [5, 7])\n", {x}) == 35);
    CHECK(terms_of("def forward(self, x, w):\n    return torch.linear(x, w)\n",
                   {x, at::rand({4, 7})}) == 7);
    CHECK(terms_of("def forward(self, x, w):\n    return torch.conv1d(x, w)\n",
                   {x, at::rand({4, 5, 3})}) == 15);
    CHECK(terms_of("def forward(self, x):\n    return torch.group_norm(x, 2)\n",
                   {at::rand({3, 6, 7})}) == 21);
    const at::Tensor bias = at::zeros({7}).requires_grad_();
    CHECK(longest_reduction([&] {
              at::layer_norm(at::rand({40, 5, 7}), {7}, at::ones({7}), bias).sum().backward();
          }) == 1400);
    CHECK(longest_reduction([&] {
              at::layer_norm(at::rand({40, 5, 7}), {7}, at::ones({7}), bias)
                  .backward(at::ones({40, 5, 7}));
          }) == 200);
    // The result is of this run only.
    CHECK(longest_reduction([] {}) == 1);
    CHECK_THROWS(longest_reduction([] { throw std::runtime_error("x"); }));
    CHECK(longest_reduction([] {}) == 1);
}

TEST_CASE("sums in another order are right, a wrong epsilon or a lost row is not") {
    for (const std::int64_t size : {64, 768, 4096, 16384}) {
        INFO(size);
        at::manual_seed(static_cast<std::uint64_t>(size));
        const at::Tensor x = at::randn({64, size});
        const at::Tensor reference = rms_norm(x.to(at::kDouble), 1e-6);
        const at::Tensor original = rms_norm(x, 1e-6);
        for (const Norm norm : {Norm::largest, Norm::euclidean}) {
            Tolerance tolerance;
            tolerance.summed = size;
            const auto problem = [&](const at::Tensor& result) {
                return compare(result, original, reference, norm, tolerance).problem;
            };
            CHECK(problem(one_by_one(x, 1e-6F)).empty());
            CHECK_FALSE(problem(one_by_one(x, 2e-5F)).empty());
            CHECK_FALSE(problem(original * 1.00001F).empty());
            at::Tensor lost = original.clone();
            lost[63] = lost[62];
            CHECK_FALSE(problem(lost).empty());
            at::Tensor dropped = original.clone();
            dropped[17][5] = 0;
            CHECK_FALSE(problem(dropped).empty());
            if (size <= 4096) {
                CHECK_FALSE(problem(one_by_one(x, 1e-5F)).empty());
            }
        }
    }
    // The case that failed before: the last bit of a community kernel, 1.4e-7 where 1.3e-7 was
    // allowed.
    const at::Tensor reference = at::full({8, 64}, 1.75, at::kDouble);
    const at::Tensor exact = reference.to(at::kFloat);
    const at::Tensor off = exact + 0x1p-22F;  // two bits
    Tolerance tolerance;
    CHECK_FALSE(compare(off, exact, reference, Norm::largest, tolerance).problem.empty());
    tolerance.summed = 64;
    CHECK(compare(off, exact, reference, Norm::largest, tolerance).problem.empty());
    // Results rounded to half precision get no more tolerance than before: sums are in float32.
    const at::Tensor half = reference.to(at::kHalf);
    tolerance.summed = 4096;
    CHECK_FALSE(compare(half * 1.002, half, reference, Norm::largest, tolerance).problem.empty());
}
