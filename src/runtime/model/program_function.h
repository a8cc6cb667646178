#pragma once
// A C++ function of this program in a model. It is an operator under a name that is unique to this
// process, so that a saved model is never bound to another function. An object in the model reports
// that when the model is saved or read.

#include <torch/script.h>

#include <string>
#include <string_view>

namespace twinkle::runtime {

// The namespace of these operators.
inline constexpr std::string_view program_namespace = "twinkle_native";

// Constant for the life of this process (and in its children), random in each.
const std::string& process_token();

// Refuses a model that calls `function` ("my_pkg.math_ops.add") of another process.
[[noreturn]] void refuse_program_function(const std::string& function, const std::string& where);

// Puts the object into every method of the root, as mark_model does for kernels.
void mark_program_function(torch::jit::Module& root, const std::string& function);

// The function ("my_pkg.math_ops.add") of the first such object in saved code that belongs to
// another process; empty: there is none.
std::string foreign_program_function(std::string_view code);

}  // namespace twinkle::runtime
