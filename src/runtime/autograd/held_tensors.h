#pragma once
// The tensors in an object's attributes, taken out and put back. A node of autograd must not hold
// its own outputs (they hold the node), nor miss that they were written to: SavedVariable sees to
// both, but only for plain tensors.

#include <ATen/core/ivalue.h>

#include <vector>

namespace twinkle::runtime {

// Every tensor that the object's attributes hold, also in tuples, lists and dictionaries; in their
// place stay undefined tensors.
std::vector<at::Tensor> take_tensors(c10::ivalue::Object& object);

// The counterpart, for as many tensors in the same order.
void put_tensors(c10::ivalue::Object& object, const std::vector<at::Tensor>& tensors);

}  // namespace twinkle::runtime
