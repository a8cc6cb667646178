// Conclusions from times, and the turns of contestants. Asserts no time.

#include "runtime/verify/timing.h"
#include "runtime/scripted.h"
#include "runtime/verify/contestant.h"

#include <map>
#include <string>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using namespace twinkle::runtime;

namespace {

std::string verdict(const std::vector<double>& contestant, const std::vector<double>& other) {
    return verdict_name(speedup_of(contestant, other).verdict);
}

}  // namespace

TEST_CASE("quartiles lie between values where they must") {
    const Spread spread = spread_of({4, 1, 3, 2});
    CHECK(spread.median == 2.5);
    CHECK(spread.lower == 1.75);
    CHECK(spread.upper == 3.25);
    CHECK(spread_of({7}).lower == 7);
    CHECK(spread_of({7}).upper == 7);
}

TEST_CASE("a difference inside the spread is none") {
    std::vector<double> original;
    std::vector<double> same;
    std::vector<double> twice;
    for (int i = 0; i < 40; ++i) {
        original.push_back(100 + i % 7);
        same.push_back(100 + (i * 3) % 7);
        twice.push_back(50 + i % 5);
    }
    CHECK(verdict(same, original) == "none");
    CHECK(verdict(original, original) == "none");
    CHECK(verdict(twice, original) == "faster");
    CHECK(verdict(original, twice) == "slower");
    const Speedup speedup = speedup_of(twice, original);
    CHECK(speedup.ratio.lower > 1.9);
    CHECK(speedup.ratio.lower <= speedup.ratio.median);
    CHECK(speedup.ratio.median <= speedup.ratio.upper);
}

TEST_CASE("a difference of less than two percent is none, however sure") {
    CHECK(verdict(std::vector<double>(100, 99), std::vector<double>(100, 100)) == "none");
    CHECK(verdict(std::vector<double>(100, 97), std::vector<double>(100, 100)) == "faster");
}

TEST_CASE("what slows the machine down for a while slows both, and hides small differences") {
    std::vector<double> original;
    std::vector<double> kernelized;
    for (int i = 0; i < 50; ++i) {
        const double busy = i % 10 < 5 ? 1 : 20;
        original.push_back(120 * busy);
        kernelized.push_back(100 * busy);
    }
    const Spread ratio = speedup_of(kernelized, original).ratio;
    CHECK(ratio.lower > 1.19);
    CHECK(ratio.upper < 1.21);
    // The quartiles of the times overlap widely.
    CHECK(verdict(kernelized, original) == "none");
}

TEST_CASE("few turns prove little") {
    const std::vector<double> five(5, 1);
    CHECK(verdict(five, std::vector<double>(5, 2)) == "unknown");
    CHECK(verdict({}, {}) == "unknown");
    const std::vector<double> ten(10, 1);
    std::vector<double> slower(10, 2);
    CHECK(verdict(ten, slower) == "faster");
    slower[3] = 0.9;  // with few turns, all must agree
    CHECK(verdict(ten, slower) == "none");
}

TEST_CASE("contestants take turns and each is first as often as the others") {
    std::string order;
    std::vector<std::function<void()>> contestants;
    for (const char name : {'a', 'b', 'c'}) {
        contestants.emplace_back([&order, name] {
            order += name;
            // Longer than the clock's resolution, so that one run is a sample.
            const auto start = std::chrono::steady_clock::now();
            while (std::chrono::steady_clock::now() - start < std::chrono::microseconds(100)) {
            }
        });
    }
    int between = 0;
    const Samples samples =
        time_in_turns(contestants, {.warm_up = 2, .runs = 12}, [&] { ++between; });
    REQUIRE(samples.size() == 3);
    CHECK(order.substr(0, 9) == "abcabcabc");  // two to warm up, one to see how long it takes
    std::map<char, int> first;
    std::map<std::string, int> pairs;
    for (std::size_t turn = 9; turn < order.size(); turn += 3) {
        std::string names = order.substr(turn, 3);
        ++first[names[0]];
        ++pairs[names.substr(0, 2)];
        std::sort(names.begin(), names.end());
        CHECK(names == "abc");
    }
    CHECK(first == std::map<char, int>{{'a', 4}, {'b', 4}, {'c', 4}});
    CHECK(pairs.size() == 6);
    for (const auto& times : samples) {
        CHECK(times.size() == 12);
    }
    CHECK(between == 6 + 1 + 36);
}

TEST_CASE("who is slower by far runs no more, and the others go on") {
    const auto lasting = [](int us) {
        return [us] {
            const auto start = std::chrono::steady_clock::now();
            while (std::chrono::steady_clock::now() - start < std::chrono::microseconds(us)) {
            }
        };
    };
    const auto runs = [](const Samples& samples) {
        std::vector<std::size_t> counts;
        for (const auto& one : samples) {
            counts.push_back(one.size());
        }
        return counts;
    };
    Sampling sampling{.warm_up = 0, .runs = 9, .runs_if_lost = 5};
    // A busy machine may stop the first one for as long as the slow one takes, but not always.
    const auto in_some_try = [&](const std::vector<std::function<void()>>& contestants,
                                 const std::vector<std::size_t>& expected) {
        for (int i = 0; i < 20; ++i) {
            if (runs(time_in_turns(contestants, sampling)) == expected) {
                return true;
            }
        }
        return false;
    };
    CHECK(in_some_try({lasting(1000), lasting(10000), lasting(10)}, {9, 5, 9}));
    CHECK(in_some_try({lasting(1000), lasting(10000)}, {5, 5}));
    // So is who is slower than the fastest, once quartiles say something; the first, with which all
    // are compared, goes on while others do.
    sampling.runs = 20;
    CHECK(in_some_try({lasting(1000), lasting(10)}, {12, 12}));
    CHECK(in_some_try({lasting(1000), lasting(10000), lasting(10)}, {12, 5, 12}));
    CHECK(in_some_try({lasting(1000), lasting(200), lasting(210)}, {20, 20, 20}));
    CHECK(in_some_try({lasting(1000), lasting(10), lasting(200), lasting(210)}, {12, 12, 12, 12}));
    CHECK(in_some_try({lasting(1000), lasting(200), lasting(500), lasting(210)}, {20, 20, 12, 20}));
    sampling.runs_if_lost = 0;
    CHECK(in_some_try({lasting(1000), lasting(10)}, {20, 20}));
}

TEST_CASE("a budget is spent, but there is a least number of turns") {
    const std::vector<std::function<void()>> one = {[] {}};
    CHECK(time_in_turns(one, {.warm_up = 0, .least_runs = 7, .budget_ms = 0}).front().size() == 7);
    CHECK(time_in_turns(one, {.warm_up = 0, .runs = 3, .least_runs = 7}).front().size() == 3);
    CHECK(time_in_turns(one, {.warm_up = 0, .budget_ms = 1e9}).front().size() == 1000);
    CHECK(time_in_turns({}, {.warm_up = 1, .runs = 3}).empty());
}

TEST_CASE("models share the parameters that are alike, and no others") {
    const torch::jit::Module from =
        tests::module_of("Shared", "def forward(self, x):\n    return x\n");
    torch::jit::Module alike = from.deepcopy();
    torch::jit::Module other = from.deepcopy();
    torch::NoGradGuard no_grad;
    other.attr("weight").toTensor()[0] = 2;
    share_parameters(from, alike);
    share_parameters(from, other);
    const void* shared = from.attr("weight").toTensor().data_ptr();
    CHECK(alike.attr("weight").toTensor().data_ptr() == shared);
    CHECK(other.attr("weight").toTensor().data_ptr() != shared);
    CHECK(other.attr("weight").toTensor()[0].item<float>() == 2);
    // For times of another layer's candidate.
    lend_parameters(from, other);
    CHECK(other.attr("weight").toTensor().data_ptr() == shared);
    torch::jit::Module wider("Wider");
    wider.register_parameter("weight", torch::zeros({2, 7}), false);
    lend_parameters(from, wider);
    CHECK(wider.attr("weight").toTensor().data_ptr() != shared);
}
