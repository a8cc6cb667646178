// Verdicts over several sizes: what one size has to do with the next.
#include "runtime/verify/judgement.h"
#include "torchscript.h"

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using namespace twinkle::runtime;

namespace {

const double unit = unit_roundoff(at::kFloat);

// Computes ones for inputs of ones. As an original it is exact there, and off by so many units for
// any other input; as a kernel it is off there, by as many as the rows say.
torch::jit::Module original(double units) {
    return tests::module_of("Original",
                            "def forward(self, x):\n    if bool(x[0] == 1):\n"
                            "        return torch.ones_like(x)\n"
                            "    return torch.full_like(x, 1 + " +
                                std::to_string(units) + " * 2.0 ** -24)\n");
}
torch::jit::Module kernel(double units_of_four, double units_of_eight) {
    return tests::module_of(
        "Kernel",
        "def forward(self, x):\n    units = " + std::to_string(units_of_four) +
            "\n    if x.size(0) == 8:\n        units = " + std::to_string(units_of_eight) +
            "\n    return torch.full_like(x, 1 + units * 2.0 ** -24)\n");
}

Verdict judged(double of_original, double of_four, double of_eight) {
    const VerificationContext context;
    const Contest contest{kernel(of_four, of_eight),
                          original(of_original),
                          original(of_original),
                          Norm::largest,
                          [] {},
                          [](const auto&) {},
                          context};
    const auto calls = [](int rows) { return Calls{{"forward", {{torch::ones({rows})}, {}}}}; };
    return judge(contest, {{"", false, calls(4)}, {"length 8", false, calls(8)}});
}

}  // namespace

TEST_CASE("an original's luck on the given inputs allows nothing more in other sizes") {
    REQUIRE(unit == Approx(std::pow(2.0, -24)));
    const at::Tensor ones = torch::ones({4});
    const double allowed =
        compare(ones, ones, ones.to(torch::kDouble), Norm::largest).allowed / unit;
    REQUIRE(allowed > 0);
    CHECK(judged(0, 0, 0).right);
    CHECK_FALSE(judged(0, 2 * allowed, 0).right);
    CHECK(judged(100 * allowed, 2 * allowed, 2 * allowed).right);
    // Three times the bound in each size, not three times the last one's.
    const Verdict verdict = judged(100 * allowed, 2.5 * allowed, 6 * allowed);
    CHECK_FALSE(verdict.right);
    CHECK(verdict.because.find("length 8") != std::string::npos);
}

TEST_CASE("what stands for a converted model may have been lucky, too") {
    const VerificationContext context;
    const at::Tensor x = torch::full({2}, 1.5).to(at::kBFloat16);
    const torch::jit::Module exact =
        tests::module_of("Exact", "def forward(self, x):\n    return x\n");
    // Exact for an input in bfloat16, and off by a rounding for any other.
    const torch::jit::Module lucky =
        tests::module_of("Lucky",
                         "def forward(self, x):\n"
                         "    return torch.where(x.to(15).to(6) == x, x, x * (1 + 2.0 ** -7))\n");
    const auto is_right = [&](double units, const torch::jit::Module& measure) {
        const Contest contest{
            tests::module_of("Converted", "def forward(self, x):\n    return x * (1 + " +
                                              std::to_string(units) + " * 2.0 ** -7)\n"),
            exact,
            exact,
            Norm::euclidean,
            [] {},
            [](const auto&) {},
            context,
            measure};
        return judge(contest, {{"", false, {{"forward", {{x}, {}}}}}}).right;
    };
    CHECK(is_right(0, exact));
    CHECK_FALSE(is_right(1, exact));
    CHECK(is_right(1, lucky));
    CHECK_FALSE(is_right(20, lucky));
}

TEST_CASE("what is tried for luck leaves the state as it was") {
    const VerificationContext context;
    const at::Tensor x = torch::full({2}, 1.5).to(at::kBFloat16);
    const torch::jit::Module exact =
        tests::module_of("Exact", "def forward(self, x):\n    return x\n");
    torch::jit::Module counting("Counting");
    counting.register_buffer("seen", torch::zeros({1}));
    counting.define(
        "def forward(self, x):\n    self.seen.add_(1)\n"
        "    return torch.where(x.to(15).to(6) == x, x, x * (1 + 2.0 ** -7))\n");
    const Contest contest{
        tests::module_of("Off", "def forward(self, x):\n    return x * (1 + 2.0 ** -7)\n"),
        exact,
        exact,
        Norm::euclidean,
        [] {},
        [](const auto&) {},
        context,
        counting};
    CHECK(judge(contest, {{"", false, {{"forward", {{x}, {}}}}}}).right);
    CHECK(counting.attr("seen").toTensor().item<double>() == 1);
}

TEST_CASE("sizes whose values were right before are measured without comparing again") {
    VerificationContext context;
    context.sampling = Sampling{};
    const SizeGroups groups{.bounds = {4, 8}, .timed = {0, 1}};
    const auto calls = [](int rows) { return Calls{{"forward", {{torch::ones({rows})}, {}}}}; };
    const auto judged = [&] {
        const Contest contest{kernel(0, 1e6), original(0),        original(0), Norm::largest,
                              [] {},          [](const auto&) {}, context};
        return judge_by_size(contest, {{"", true, calls(4)}, {"length 8", true, calls(8)}}, groups);
    };
    const JudgedSizes compared = judged();
    REQUIRE(compared.timed.size() == 1);  // the other size is wrong
    CHECK_FALSE(compared.verdict.by_size.at(1).problem.empty());
    context.compares = false;
    const JudgedSizes measured = judged();
    CHECK(measured.verdict.right);
    REQUIRE(measured.timed.size() == 2);
    CHECK(measured.timed[1].first == 1);
    CHECK(measured.verdict.by_size.at(1).problem.empty());
}

TEST_CASE("where nothing runs in double, sums may be in another order, and a failure says so") {
    const std::string only_float = "    assert x.dtype == 6, 'float32 alone'\n";
    const auto sum = tests::module_of(
        "Sum", "def forward(self, x):\n" + only_float + "    return x.sum(-1, keepdim=True)\n");
    const auto off = [&](double units) {
        return tests::module_of("Off", "def forward(self, x):\n" + only_float +
                                           "    return x.sum(-1, keepdim=True) * (1 + " +
                                           std::to_string(units) + " * 2.0 ** -24)\n");
    };
    const auto judged_as = [&](const torch::jit::Module& kernel) {
        const VerificationContext context;
        const Contest contest{kernel, sum, sum, Norm::largest, [] {}, [](const auto&) {}, context};
        return judge(contest, {{"", false, {{"forward", {{torch::ones({4, 1024})}, {}}}}}});
    };
    const std::string own = "compared with the original's own values";
    CHECK(judged_as(off(8)).right);
    CHECK(judged_as(off(8)).because.find(own) == 0);
    const Verdict wrong = judged_as(off(64));
    CHECK_FALSE(wrong.right);
    CHECK(wrong.because.find("its error is") == 0);
    CHECK(wrong.because.find(own) != std::string::npos);
}
