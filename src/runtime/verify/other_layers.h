#pragma once
// What the other layers of a model leave before a call on a CPU: data of theirs in the cores' own
// caches, and threads that are awake. Without them a sample begins with what the contestant before
// it has left, and may wait for threads: a product of 1 x 768 and 768 x 3072 took 236 us in one
// tuning and 289 in the next, and 204 and 203 with them.

#include <ATen/core/Tensor.h>

namespace twinkle::runtime {

class OtherLayers {
public:
    // For as many threads as LibTorch computes with now.
    OtherLayers();

    // Reads more than a core's second cache holds, on all threads; some 0.1 ms.
    void run() const;

private:
    at::Tensor data_;
};

}  // namespace twinkle::runtime
