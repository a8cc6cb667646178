#pragma once
// A C++ function of this program in a model. It is an operator under a name that no other process
// has, so that a saved model is never bound to another function; an object in the model says so
// where it is saved, and where it is read.

#include <torch/script.h>

#include <string>
#include <string_view>

namespace twinkle::runtime {

// The namespace of these operators.
inline constexpr std::string_view program_namespace = "twinkle_native";

// The same as long as this process lives (and in its children), random in each.
const std::string& process_token();

// What is wrong with a model that calls `function` ("my_pkg.math_ops.add") of another process.
[[noreturn]] void refuse_program_function(const std::string& function, const std::string& where);

// Puts the object into every method of the root, as mark_model does for kernels.
void mark_program_function(torch::jit::Module& root, const std::string& function);

// "my_pkg.math_ops.add" of the first such object, named in saved code, that is of another process;
// empty: there is none.
std::string foreign_program_function(std::string_view code);

}  // namespace twinkle::runtime
