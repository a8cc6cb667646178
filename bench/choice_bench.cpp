// What a choice costs on a hit: the executor finds the configuration of a norm's call, which runs
// nothing here.
//
//     choice_bench [SECONDS]

#include "twinkle/tuning.h"

#include <torch/types.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using namespace twinkle;

struct Norm : Operation<FwdParams> {
    std::string name() const override { return "bench::norm"; }
    at::Tensor run(const at::Tensor& x, const at::Tensor&, double, const FwdParams&) const {
        return x;
    }
};

// Nanoseconds of a choice, in each of so many threads at once; the median of the threads.
double nanoseconds(const Executor& executor, int threads, double seconds) {
    std::atomic<int> ready = 0;
    std::atomic<bool> stop = false;
    std::vector<double> each(static_cast<std::size_t>(threads));
    std::vector<std::thread> running;
    for (double& own : each) {
        running.emplace_back([&] {
            const Norm norm;
            const at::Tensor x = torch::ones({4, 128, 4096});
            const at::Tensor weight = torch::ones({4096});
            std::int64_t sum = executor.cfg(norm, x, weight, 1e-6).num_warps;
            ++ready;
            while (ready < threads) {
                std::this_thread::yield();
            }
            const auto start = std::chrono::steady_clock::now();
            std::size_t calls = 0;
            while (!stop.load(std::memory_order_relaxed)) {
                for (int i = 0; i < 1000; ++i) {
                    sum += executor.cfg(norm, x, weight, 1e-6).num_warps;
                }
                calls += 1000;
            }
            // Of this thread alone: there may be fewer cores than threads.
            timespec used{};
            ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
            const std::chrono::duration<double, std::nano> spent =
                std::chrono::steady_clock::now() - start;
            const double processor =
                static_cast<double>(used.tv_sec) * 1e9 + static_cast<double>(used.tv_nsec);
            own = (sum == 0 ? 0 : std::min(spent.count(), processor)) / static_cast<double>(calls);
        });
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    stop = true;
    for (std::thread& thread : running) {
        thread.join();
    }
    std::nth_element(each.begin(), each.begin() + each.size() / 2, each.end());
    return each[each.size() / 2];
}

}  // namespace

int main(int count, char** arguments) {
    const double seconds = count > 1 ? std::atof(arguments[1]) : 1;
    const Executor executor{ConfigSelectorChain{ConfigCache()}};
    for (const int threads : {1, 16}) {
        std::printf("%2d threads: %.0f ns a choice\n", threads,
                    nanoseconds(executor, threads, seconds));
    }
}
