#pragma once
// The functions of torch.nn.functional that differ from the operator of their name (other
// arguments, another order), as Python that is compiled like a kernel's own.

#include <string>

namespace twinkle::runtime {

const std::string& python_functions_source();

}  // namespace twinkle::runtime
