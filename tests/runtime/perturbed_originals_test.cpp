// What the original's error on inputs that differ by a rounding adds to what is allowed.
#include "runtime/verify/perturbed_originals.h"

#include <torch/script.h>

#include <stdexcept>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using namespace twinkle::runtime;

namespace {

const double unit = unit_roundoff(at::kFloat);

// An original that is off by `error` units where its inputs are not those of the reference.
struct Lucky {
    double error;
    at::Tensor given = torch::ones({4});
    int other_runs = 0;

    c10::IValue run(const Inputs& inputs) {
        const at::Tensor& x = inputs.positional.at(0).toTensor();
        const bool same = torch::equal(x, given);
        other_runs += same ? 0 : 1;
        return same ? given.clone() : given * (1 + error * unit);
    }
};

Comparison off_by(double units, const Lucky& original) {
    return compare(original.given * (1 + units * unit), original.given,
                   original.given.to(torch::kDouble), Norm::largest);
}

std::vector<Bound> nearby(Lucky& original, const Comparison& compared, const Inputs& inputs) {
    return bounds_nearby([&](const Inputs& given) { return original.run(given); }, inputs,
                         original.given.to(torch::kDouble), compared, Norm::largest, {});
}

}  // namespace

TEST_CASE("an original's luck on a few values does not make a replacement wrong") {
    Lucky original{4};
    const Comparison compared = off_by(4, original);
    REQUIRE(compared.problem.find("allowed") != std::string::npos);
    CHECK(may_be_luck(compared));
    const auto bounds = nearby(original, compared, {{original.given}, {}});
    REQUIRE(bounds.size() == 1);
    CHECK(bounds[0].error == Approx(1.5 * 4 * unit).epsilon(0.01));
    CHECK(original.other_runs > 0);
}

TEST_CASE("an original that a perturbation throws off allows three times as much at most") {
    Lucky original{1e6};
    const Comparison compared = off_by(4, original);
    const auto bounds = nearby(original, compared, {{original.given}, {}});
    CHECK(bounds.at(0).error == Approx(3 * compared.allowed));
}

TEST_CASE("what is right, far off or no number is not luck") {
    const Lucky original{4};
    CHECK_FALSE(may_be_luck(off_by(1, original)));
    CHECK_FALSE(may_be_luck(off_by(100, original)));
    const at::Tensor reference = torch::ones({4}, torch::kDouble);
    const at::Tensor ones = torch::ones({4});
    CHECK_FALSE(may_be_luck(compare(ones / 0, ones, reference)));
    CHECK_FALSE(may_be_luck(compare(torch::ones({3}), ones, reference)));
}

TEST_CASE(
    "inputs in half precision and integers stay, and an original that throws changes nothing") {
    Lucky original{4};
    const Comparison compared = off_by(4, original);
    for (const auto dtype : {torch::kHalf, torch::kBFloat16, torch::kLong}) {
        const at::Tensor given = original.given.to(dtype);
        int runs = 0;
        bounds_nearby(
            [&](const Inputs& inputs) {
                ++runs;
                CHECK(torch::equal(inputs.positional.at(0).toTensor(), given));
                return original.given;
            },
            {{given, original.given}, {}}, original.given.to(torch::kDouble), compared,
            Norm::largest, {});
        CHECK(runs > 0);
        bounds_nearby(
            [&](const Inputs&) -> c10::IValue {
                FAIL("nothing moves, so that another run says nothing");
                return original.given;
            },
            {{given}, {}}, original.given.to(torch::kDouble), compared, Norm::largest, {});
    }
    const auto bounds = bounds_nearby(
        [](const Inputs&) -> c10::IValue { throw std::runtime_error("no"); },
        {{original.given}, {}}, original.given.to(torch::kDouble), compared, Norm::largest, {});
    CHECK(bounds.at(0).error == compared.allowed);
}

TEST_CASE(
    "a result within what luck explains is right, and a counting original is left as it was") {
    torch::jit::Module counter("Counter");
    counter.register_buffer("runs", torch::zeros({}));
    const at::Tensor given = Lucky{4}.given;
    const Yardstick original{given,
                             {{given}, {}},
                             [&](const Inputs& nearby) -> c10::IValue {
                                 counter.attr("runs").toTensor().add_(1);
                                 CHECK(counter.attr("runs").toTensor().item<double>() == 1);
                                 return Lucky{4}.run(nearby);
                             },
                             counter};
    const auto compared = [&](double units) {
        return compare_beyond_luck(given * (1 + units * unit), original, given.to(torch::kDouble),
                                   Norm::largest, {});
    };
    const Comparison right = compared(4);
    CHECK(right.problem.empty());
    CHECK(right.allowed == Approx(1.5 * 4 * unit).epsilon(0.01));
    CHECK(right.bounds.at(0).error == compared(0).allowed);  // another size has luck of its own
    CHECK_FALSE(compared(7).problem.empty());
    CHECK(counter.attr("runs").toTensor().item<double>() == 0);
}
