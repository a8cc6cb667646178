#pragma once
// Times of two contenders on the same work, taken in turns so that both see the same machine.

#include <functional>

namespace twinkle::runtime {

struct TimePair {
    double first_us = 0;  // medians
    double second_us = 0;
};

// Warms both up (TorchScript profiles its first runs), then alternates until `budget_ms` is spent.
TimePair time_in_turns(const std::function<void()>& first, const std::function<void()>& second,
                       double budget_ms = 150);

}  // namespace twinkle::runtime
