#include "measure.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

#include "reused_memory.h"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

// A sample consists of as many calls as take about this long.
constexpr double sample_seconds = 1e-4;
constexpr size_t least_rounds = 5, most_rounds = 4000;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Every call uses the least recently used inputs, so that none finds in the cache what the one
// before has read.
double sample(Contestant& contestant, const std::vector<Values>& inputs, int calls) {
    static size_t next = 0;
    reuse_memory(contestant.warm);
    const auto start = Clock::now();
    for (int call = 0; call < calls; ++call) contestant.run(inputs[next++ % inputs.size()]);
    const double seconds = seconds_since(start) / calls;
    reuse_memory(false);
    return seconds;
}

double quantile(std::vector<double>& values, double q) {
    const auto at =
        values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

}  // namespace

std::vector<Timing> measure(std::vector<Contestant> contestants, const std::vector<Values>& inputs,
                            double budget) {
    std::vector<int> calls;
    for (auto& contestant : contestants) {
        sample(contestant, inputs, 2);  // TorchScript optimizes in its first calls
        const double once = sample(contestant, inputs, 1);
        const double seconds = once < sample_seconds ? sample(contestant, inputs, 20) : once;
        calls.push_back(std::max(1, static_cast<int>(sample_seconds / seconds)));
    }
    std::vector<std::vector<double>> samples(contestants.size());
    // Shuffles every round: the order decides what is in the cache.
    std::vector<size_t> order(contestants.size());
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 random;  // the same orders every time
    const auto start = Clock::now();
    size_t round = 0;
    while (round < least_rounds || (seconds_since(start) < budget && round < most_rounds)) {
        std::shuffle(order.begin(), order.end(), random);
        for (size_t index : order)
            samples[index].push_back(sample(contestants[index], inputs, calls[index]));
        ++round;
    }
    release_reused_memory();

    std::vector<Timing> timings;
    for (size_t k = 0; k < contestants.size(); ++k)
        timings.push_back({(contestants[k].warm ? "warm " : "") + contestants[k].name,
                           quantile(samples[k], 0), quantile(samples[k], 0.25),
                           quantile(samples[k], 0.5), quantile(samples[k], 0.75)});
    return timings;
}

}  // namespace bench
