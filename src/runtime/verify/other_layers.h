#pragma once
// What the other layers of a model leave before a call on a CPU: data of theirs in the cores' own
// caches, and threads that are awake. Without them a sample begins with what the contestant before
// it has left, and may wait for threads: a product of 1 x 768 and 768 x 3072 took 236 us in one
// tuning and 289 in the next, and 204 and 203 with them.

#include <c10/core/Device.h>

#include <functional>

namespace twinkle::runtime {

// Reads more than a core's second cache holds, on as many threads as LibTorch computes with now;
// some 0.1 ms. On a GPU it does nothing.
std::function<void()> other_layers(const c10::Device& device);

}  // namespace twinkle::runtime
