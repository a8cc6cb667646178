#include "runtime/verify/timing.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace twinkle::runtime {

namespace {

constexpr int warm_up_runs = 3;
constexpr std::size_t max_runs = 200;

double microseconds(const std::function<void()>& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
        .count();
}

double median(std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace

TimePair time_in_turns(const std::function<void()>& first, const std::function<void()>& second,
                       double budget_ms) {
    for (int run = 0; run < warm_up_runs; ++run) {
        first();
        second();
    }
    std::vector<double> firsts;
    std::vector<double> seconds;
    double spent = 0;
    do {
        firsts.push_back(microseconds(first));
        seconds.push_back(microseconds(second));
        spent += firsts.back() + seconds.back();
    } while (spent < budget_ms * 1000 && firsts.size() < max_runs);
    return {median(firsts), median(seconds)};
}

}  // namespace twinkle::runtime
