#pragma once
// How sure a median is: what was measured often in one process still differs in another one.

#include <cstddef>
#include <string_view>

#include "tuning/entry.h"

namespace twinkle::tuning {

// How far medians from two processes may differ, however many runs each has: a share of the median
// (memory placement) plus a constant (thread wake-up), in microseconds.
struct ProcessNoise {
    double share = 0;
    double us = 0;

    ProcessNoise without_constant() const { return {share, 0}; }
};

// Measured with BERT-base and a Llama-like model. `platform`: as get_device_platform() says.
ProcessNoise process_noise(std::string_view platform, int threads);

// A median with the bounds in which another run's is expected: the notch of a box plot on either
// side, 1.57 times the quartiles' distance over the root of the runs, and the noise. Two medians
// whose notches lie apart differ with 95 % confidence (McGill, Tukey and Larsen, Variations of Box
// Plots, The American Statistician 32, 1978). At least one run.
Times bounded_median(double median_us, double interquartile_us, std::size_t runs,
                     const ProcessNoise& noise);

}  // namespace twinkle::tuning
