// The parts of verification: the comparison, the child process, the recorded calls, the double
// reference.

#include "runtime/model/inputs.h"
#include "runtime/scripted.h"
#include "runtime/trial/sandbox.h"
#include "runtime/verify/call_recorder.h"
#include "runtime/verify/comparison.h"
#include "runtime/verify/double_reference.h"

#include <unistd.h>
#include <cmath>
#include <csignal>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using namespace twinkle::runtime;

TEST_CASE("an error of more than 1.5 times the original's own is not right") {
    const at::Tensor reference = torch::linspace(1, 2, 100, torch::kDouble);
    const at::Tensor original = reference.to(torch::kFloat);
    const auto off_by = [&](double amount) {
        at::Tensor result = original.clone();
        result[50] += amount;
        return compare(result, original, reference);
    };
    CHECK(off_by(0).problem.empty());
    CHECK(off_by(1e-9).problem.empty());
    // One bit of that element, more than the unit roundoff of the largest.
    CHECK(off_by(1.2e-7).error > unit_roundoff(at::kFloat));
    CHECK(off_by(1.2e-7).problem.empty());
    CHECK_FALSE(off_by(4e-7).problem.empty());
    CHECK_FALSE(off_by(1e-5).problem.empty());
    CHECK_FALSE(off_by(NAN).problem.empty());
    CHECK_FALSE(off_by(INFINITY).problem.empty());
    CHECK_FALSE(compare(original.unsqueeze(0), original, reference).problem.empty());
    CHECK_FALSE(compare(original.to(torch::kHalf), original, reference).problem.empty());
    CHECK(compare(original, original, reference).error <= unit_roundoff(at::kFloat));
}

TEST_CASE("the Euclidean norm forgives one unlucky rounding, not a wrong value") {
    const at::Tensor reference = torch::linspace(1, 2, 1000, torch::kDouble);
    const at::Tensor original = reference.to(torch::kFloat);
    const double own = compare(original, original, reference).error;
    const auto off_by = [&](double amount) {
        at::Tensor result = original.clone();
        result[999] = 2.0 + amount;
        return compare(result, original, reference, Norm::euclidean).problem;
    };
    CHECK(off_by(4 * own).empty());
    CHECK_FALSE(off_by(20 * own).empty());
    CHECK_FALSE(off_by(NAN).empty());
    CHECK_FALSE(
        compare(original * (1 + 4e-7), original, reference, Norm::euclidean).problem.empty());
}

// A ViT with two classes: each of its sites was right, and its two values differed by twice the
// original's error.
TEST_CASE("the Euclidean norm of few values is as random as the largest difference") {
    const auto off_by = [](std::int64_t values, double errors) {
        const at::Tensor reference = torch::ones({values}, torch::kDouble);
        const at::Tensor original = (reference * (1 + 1e-5)).to(torch::kFloat);
        const at::Tensor result = (reference * (1 + errors * 1e-5)).to(torch::kFloat);
        return compare(result, original, reference, Norm::euclidean).problem;
    };
    CHECK(off_by(2, 3).empty());
    CHECK(off_by(63, 3).empty());
    CHECK_FALSE(off_by(2, 5).empty());
    CHECK_FALSE(off_by(64, 3).empty());
    CHECK(off_by(64, 1.4).empty());
}

TEST_CASE("NaN and infinity agree where the reference has them too") {
    at::Tensor reference = torch::ones({4}, torch::kDouble);
    reference[1] = NAN;
    reference[2] = -INFINITY;
    const at::Tensor value = reference.to(torch::kFloat);
    CHECK(compare(value, value, reference).problem.empty());
    at::Tensor other = value.clone();
    other[2] = INFINITY;
    CHECK_FALSE(compare(other, value, reference).problem.empty());
}

TEST_CASE("large results are compared as small ones are, wherever the error lies") {
    at::manual_seed(1);
    const at::Tensor reference = at::randn({3, 100'003}, at::kDouble);
    const at::Tensor original = reference.to(at::kFloat);
    const double scale = reference.abs().max().item<double>();
    for (const std::int64_t place :
         {std::int64_t{0}, std::int64_t{32'768}, reference.numel() - 1}) {
        at::Tensor wrong = original.clone();
        wrong.view(-1)[place] += 0.5;
        const Comparison found = compare(wrong, original, reference);
        CHECK_FALSE(found.problem.empty());
        CHECK(std::abs(found.error - 0.5 / scale) < 1e-6);
        const Comparison norms = compare(wrong, original, reference, Norm::euclidean);
        CHECK(std::abs(norms.error - 0.5 / reference.norm().item<double>()) < 1e-7);
        wrong.view(-1)[place] = NAN;
        CHECK(std::isinf(compare(wrong, original, reference).error));
        at::Tensor both = reference.clone();
        both.view(-1)[place] = NAN;
        CHECK(compare(wrong, wrong, both).problem.empty());
    }
    const at::Tensor turned = original.t();  // not in the order of memory
    CHECK(compare(turned, turned, reference.t()).problem.empty());
}

TEST_CASE("an exactly rounded result is right even where the original happens to be exact") {
    const at::Tensor reference = torch::ones({8}, torch::kDouble);
    const at::Tensor exact = reference.to(torch::kBFloat16);
    CHECK(compare(exact, exact, reference).problem.empty());
    CHECK_FALSE(compare(exact * 1.02, exact, reference).problem.empty());
}

TEST_CASE("structures are compared element by element; integers must be equal") {
    const at::Tensor a = torch::ones({2});
    const at::Tensor d = a.to(torch::kDouble);
    const auto tuple = [](std::vector<c10::IValue> values) {
        return c10::IValue(c10::ivalue::Tuple::create(std::move(values)));
    };
    CHECK(compare(tuple({a, 3}), tuple({a, 3}), tuple({d, 3})).problem.empty());
    CHECK_FALSE(compare(tuple({a, 4}), tuple({a, 3}), tuple({d, 3})).problem.empty());
    CHECK_FALSE(compare(tuple({a}), tuple({a, 3}), tuple({d, 3})).problem.empty());
    const at::Tensor ints = torch::arange(3);
    CHECK(compare(ints, ints, ints).problem.empty());
    CHECK_FALSE(compare(ints + 1, ints, ints).problem.empty());
}

TEST_CASE("a child's crash, exit, exception and silence are told apart") {
    const auto outcome = [](const std::function<void()>& work) {
        SandboxLimits limits;
        limits.silence = std::chrono::milliseconds(1500);
        std::vector<std::string> lines;
        const auto result = run_in_sandbox(
            limits,
            [&](const auto& send) {
                send("before");
                work();
                send("after");
            },
            [&](std::string_view line) { lines.emplace_back(line); });
        CHECK(lines.front() == "before");
        CHECK((lines.size() == 2) == result.finished);
        return result.finished ? "finished" : result.why;
    };
    CHECK(outcome([] {}) == "finished");
    CHECK(outcome([] { ::raise(SIGSEGV); }).find("segmentation fault") != std::string::npos);
    CHECK(outcome([] { std::abort(); }).find("aborted") != std::string::npos);
    CHECK(outcome([] { ::_exit(0); }) != "finished");
    CHECK(outcome([] { ::_exit(7); }).find("exit code 7") != std::string::npos);
    CHECK(outcome([] { throw std::runtime_error("x"); }).find("exception") != std::string::npos);
    CHECK(outcome([] { ::sleep(30); }).find("hung") != std::string::npos);
}

TEST_CASE("a child that eats memory does not take this process with it") {
    SandboxLimits limits;
    limits.memory = 256u << 20;
    const auto outcome = run_in_sandbox(
        limits,
        [](const auto&) {
            std::vector<std::vector<char>> hoard;
            while (true) {
                hoard.emplace_back(16u << 20, 'x');
            }
        },
        [](std::string_view) {});
    CHECK_FALSE(outcome.finished);
}

TEST_CASE("calls are recorded as they were, before the site changes its inputs") {
    auto model = tests::module_of("Host", "def forward(self, x):\n    return x.add_(1)\n");
    CallRecorder recorder(model, {""});
    const auto calls = recorder.record(2, [](torch::jit::Module& module) {
        module.forward({torch::zeros({2})});
        module.forward({torch::ones({2})});
        module.forward({torch::ones({2})});
    });
    REQUIRE(calls.at("").size() == 2);
    CHECK(torch::equal(calls.at("")[0].inputs[0].toTensor(), torch::zeros({2})));
    CHECK(torch::equal(calls.at("")[1].inputs[0].toTensor(), torch::ones({2})));
    // Another run is recorded separately, also after one that failed.
    CHECK_THROWS(recorder.record(2, [](torch::jit::Module& module) {
        module.forward({torch::zeros({2})});
        throw std::runtime_error("x");
    }));
    const auto again =
        recorder.record(2, [](torch::jit::Module& module) { module.forward({torch::ones({3})}); });
    REQUIRE(again.at("").size() == 1);
    CHECK(torch::equal(again.at("")[0].inputs[0].toTensor(), torch::ones({3})));
}

TEST_CASE("what was allowed before is allowed again, and a factor allows more") {
    const at::Tensor reference = torch::ones({8}, torch::kDouble);
    const at::Tensor exact = reference.to(torch::kFloat);
    const at::Tensor off = exact * (1 + 1e-6);
    const auto problem = [&](const Tolerance& tolerance, Norm norm) {
        return compare(off, exact, reference, norm, tolerance).problem;
    };
    for (const Norm norm : {Norm::largest, Norm::euclidean}) {
        CHECK_FALSE(problem({}, norm).empty());
        CHECK(problem({20}, norm).empty());
        CHECK(problem({1, 1, {{2e-6, 2e-6}}}, norm).empty());
        CHECK_FALSE(problem({1, 1, {{1e-7, 1e-7}}}, norm).empty());
        const auto bounds = compare(exact, exact, reference, norm).bounds;
        REQUIRE(bounds.size() == 1);
        CHECK(bounds[0].error >= unit_roundoff(at::kFloat));
    }
}

TEST_CASE("casts that were baked in become double, other integers stay") {
    auto model = tests::module_of("Host", R"(
def forward(self, x):
    y = x.to(15) if x.dim() == 6 else x.to(6)
    return (y + 6).to(15)
)");
    compute_in_double(model);
    model.to(torch::kDouble);
    const at::Tensor x = torch::full({3}, 1.0 / 3, torch::kDouble);
    const at::Tensor y = model.forward({x}).toTensor();
    CHECK(y.scalar_type() == torch::kDouble);
    CHECK(torch::equal(y, x + 6));
}

TEST_CASE("tensors that a model makes without a dtype are double, unless they are of integers") {
    auto model = tests::module_of("Host", R"(
def forward(self, x):
    sums = torch.zeros([2, 4]).index_add_(0, torch.tensor([0, 1, 1]), x)
    most = torch.full([2, 4], -1e9).scatter_reduce_(0, torch.full([3, 4], 1), x, "amax")
    steps = torch.arange(0.0, 1.0, 0.25) + torch.tensor([0.125, 0.25, 0.5, 1.0])
    return sums + steps, most, torch.arange(3), torch.full([2], 1), torch.tensor([True])
)");
    compute_in_double(model);
    const at::Tensor x = torch::randn({3, 4}, torch::kDouble);
    const auto results = model.forward({x}).toTuple();
    const auto result = [&](std::size_t i) { return results->elements()[i].toTensor(); };
    const at::Tensor steps = torch::tensor({0.125, 0.5, 1.0, 1.75}, torch::kDouble);
    CHECK(torch::allclose(result(0)[1], x[1] + x[2] + steps, 0, 1e-12));
    CHECK(torch::equal(result(1)[1], x.amax(0)));
    CHECK(result(2).scalar_type() == torch::kLong);
    CHECK(result(3).scalar_type() == torch::kLong);
    CHECK(result(4).scalar_type() == torch::kBool);
}

TEST_CASE("products of groups, as of a mixture of experts, are computed in double") {
    auto model = tests::module_of("Host", R"(
def forward(self, x, weight, ends):
    y = torch._grouped_mm(x, weight, ends)
    return torch._grouped_mm(y.unsqueeze(0), weight[:1])
)");
    compute_in_double(model);
    // The second group has no row.
    const at::Tensor ends = torch::tensor({2, 2, 5}, torch::kInt);
    const at::Tensor x = torch::randn({5, 8}, torch::kDouble);
    const at::Tensor weight = torch::randn({3, 8, 8}, torch::kDouble);
    const at::Tensor y = torch::cat({x.slice(0, 0, 2).mm(weight[0]), x.slice(0, 2).mm(weight[2])});
    const auto result = model.forward({x, weight, ends}).toTensor();
    CHECK(result.scalar_type() == torch::kDouble);
    CHECK(torch::allclose(result, y.mm(weight[0]).unsqueeze(0), 0, 1e-12));
    const at::Tensor half =
        model.forward({x.to(torch::kBFloat16), weight.to(torch::kBFloat16), ends}).toTensor();
    CHECK(half.scalar_type() == torch::kBFloat16);
}

TEST_CASE("masks of attention that the model makes in float32 are read as what they are") {
    auto model = tests::module_of("Host", R"(
def forward(self, x):
    far = torch.full([x.size(2), x.size(2)], -1e4).triu(1)
    near = x.size(2) > 1
    y = torch.scaled_dot_product_attention(x, x, x, far)
    y = y + torch.scaled_dot_product_attention(x, x, x, far > -1.0)
    return y + torch.scaled_dot_product_attention(x, x, x, far if near else None)
)");
    compute_in_double(model);
    const at::Tensor x = torch::randn({1, 2, 40, 8}, torch::kDouble);
    const at::Tensor y = model.forward({x}).toTensor();
    CHECK(torch::allclose(y, 3 * at::scaled_dot_product_attention(x, x, x, {}, 0, true), 0, 1e-9));
}

TEST_CASE("inputs are made from a description, the same every time") {
    const Inputs inputs = read_inputs("int64[2,3]:5..7;float32[4];bfloat16[1,2]:-1..1;bool[3]");
    REQUIRE(inputs.positional.size() == 4);
    const at::Tensor ids = inputs.positional[0].toTensor();
    CHECK(ids.sizes() == at::IntArrayRef({2, 3}));
    CHECK(ids.scalar_type() == at::kLong);
    CHECK(ids.min().item<int>() >= 5);
    CHECK(ids.max().item<int>() < 7);
    CHECK(inputs.positional[2].toTensor().scalar_type() == at::kBFloat16);
    CHECK(torch::equal(read_inputs("float32[4]").positional[0].toTensor(),
                       read_inputs("float32[4]").positional[0].toTensor()));
    for (const std::string bad :
         {"float33[2]", "float32[2", "float32[x]", "float32[-1]", "int64[2]:7..5", "int64[2]7..5",
          "int64[99999999999,99999999999]", "float32[2];;", "[3]", "int64[2]:a..b"}) {
        INFO(bad);
        CHECK_THROWS_AS(read_inputs(bad), Error);
    }
}
