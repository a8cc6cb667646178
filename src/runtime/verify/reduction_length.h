#pragma once
// How many terms the longest sum of a computation has: two right orders of summation differ by more
// the longer it is.

#include <cstdint>
#include <functional>

namespace twinkle::runtime {

// Of all operators that run during `work`, on any thread. 1: none sums.
std::int64_t longest_reduction(const std::function<void()>& work);

}  // namespace twinkle::runtime
