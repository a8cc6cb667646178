#pragma once
// Operators that can have their weights laid out for this machine, once. Beside an operator `f` of
// a kernel with an argument `weight` there may be `f_prepack(Tensor weight, …) -> Tensor?`: it
// takes those arguments of f that it names, and answers what f is to get in the place of the
// weight, or None. If no argument of f is called `weight`, it is for each whose name has a number
// behind that or a word in front of it (`weight1`, `gate_weight`), by itself. A function of the
// kernel that calls f takes such an answer for the weight, too.

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstddef>
#include <map>
#include <vector>

namespace twinkle::runtime {

struct PrepackOperator {
    c10::OperatorHandle prepack;
    std::vector<std::size_t> weights{};    // which arguments of f
    std::vector<std::size_t> arguments{};  // … those that follow the weight in f_prepack

    bool is_weight(std::size_t argument) const;
};

using PrepackOperators = std::map<c10::Symbol, PrepackOperator>;  // by f: "ns::conv2d"

// Returns those of the kernels that this process has loaded.
PrepackOperators prepack_operators();

}  // namespace twinkle::runtime
