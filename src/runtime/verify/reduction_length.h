#pragma once
// The number of terms in a computation's longest sum: the longer it is, the more two correct orders
// of summation differ.

#include <cstdint>
#include <functional>

namespace twinkle::runtime {

// Observes all operators that run during `work`, on any thread. 1: none sums.
std::int64_t longest_reduction(const std::function<void()>& work);

}  // namespace twinkle::runtime
