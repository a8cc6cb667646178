#pragma once
// Whether another tensor may take a weight's place without anybody noticing.

#include <torch/script.h>

#include <cstddef>

namespace twinkle::runtime {

// Whether so many slots, and `weight` itself, are all that holds it: nothing shares its memory, no
// graph of autograd and no hook refers to it.
bool is_held_by_slots_alone(const at::Tensor& weight, std::size_t slots);

}  // namespace twinkle::runtime
