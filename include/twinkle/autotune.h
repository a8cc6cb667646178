#pragma once
// Measuring candidates in this process.

#include "twinkle/selector.h"

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace twinkle {

struct AutotuneOptions {
    int num_warmup = 3;  // unmeasured runs of each
    // Measured ones of each; what has surely lost has fewer, and all where one is left.
    int num_iters = 10;
    double budget_ms = 0;  // stop then with what there is; 0: no limit
    // Each runs once in a child process first: one that crashes, or takes longer than this many
    // seconds, is banned, and this process goes on. Not for tensors on a GPU, which a child cannot
    // use; and not where a call measures (TuningPolicy), as a child lacks this process's threads.
    bool in_children = true;
    double child_seconds = 60;
};

// What autotune() says.
template <class Cfg>
struct Tuned {
    Cfg cfg;                  // the best
    Measurement measurement;  // everything; candidates[0] is the heuristic's
};

struct BenchmarkOptions {
    int num_iters = 100;
    int num_warmup = 3;
};
// Microseconds of one call: median and quartiles.
struct BenchmarkTimes {
    double lower_us = 0;
    double median_us = 0;
    double upper_us = 0;
    std::size_t runs = 0;
};
// A GPU's work is waited for where `device` is one.
TWINKLE_API BenchmarkTimes benchmark(const std::function<void()>& function,
                                     const BenchmarkOptions& options = {},
                                     const c10::Device& device = c10::kCPU);

namespace detail {

// Candidates of one call. The first is right by definition: another one whose results differ from
// its by more than the order of sums makes, or that throws, is banned.
struct Trial {
    std::string build{};
    bool captured = false;  // on a GPU: measured as CUDA graphs
    std::vector<std::string> cfgs{};
    std::function<std::vector<at::Tensor>(std::size_t candidate)> run{};
    // What the call reads, and perhaps writes: put back to what it was before every run.
    std::vector<at::Tensor> tensors{};
};
// Interleaved, robust: medians and quartiles. Throws what the first candidate throws.
TWINKLE_API Measurement measure(const Trial& trial, const AutotuneOptions& options);

template <class T>
void append_tensors(std::vector<at::Tensor>& all, const T& result) {
    if constexpr (std::is_same_v<T, at::Tensor>) {
        all.push_back(result);
    } else if constexpr (requires { std::tuple_size<T>::value; }) {
        std::apply([&](const auto&... parts) { (append_tensors(all, parts), ...); }, result);
    } else if constexpr (requires { std::begin(result); }) {
        for (const auto& part : result) {
            append_tensors(all, part);
        }
    }
}

}  // namespace detail

}  // namespace twinkle
