#pragma once
// Values of tensors in lists, tuples and dicts, as forward() takes and returns them.

#include <ATen/core/ivalue.h>

#include <functional>
#include <vector>

namespace twinkle::runtime {

using Values = std::vector<c10::IValue>;

// Changes every tensor; the types of lists, dicts and named tuples stay.
c10::IValue with_tensors(const c10::IValue& value,
                         const std::function<at::Tensor(const at::Tensor&)>& change);
Values with_tensors(const Values& values,
                    const std::function<at::Tensor(const at::Tensor&)>& change);
// Copies every tensor.
c10::IValue cloned(const c10::IValue& value);

// All defined tensors, in a fixed order.
std::vector<at::Tensor> tensors_of(const c10::IValue& value);
std::vector<at::Tensor> tensors_of(const Values& values);

// Accepts only tensors, numbers, strings, None, devices, and lists, tuples and dicts of them.
bool is_plain(const c10::IValue& value);

}  // namespace twinkle::runtime
