#pragma once
// What LibTorch's operators do with the dtypes of their operands: which must be the same, which
// pass a value on, which compute something new.

#include <torch/csrc/jit/ir/ir.h>

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace twinkle::runtime {

inline bool is_tensor_type(const torch::jit::Value* value) {
    return value->type()->kind() == c10::TypeKind::TensorType;
}

// The inputs that an operator wants in one dtype, or fails: products, convolutions, norms,
// attention. Empty: it takes a mixture.
std::vector<std::size_t> operands_of_one_dtype(std::string_view op);

// Whether a result is its first operand, moved or cut but not computed: views, copies, dropout.
bool passes_on(std::string_view op);

// Whether the user of a value hands it on (a call, a tuple, a view, the end of a method) or needs
// it in the dtype of others. What computes with it element by element does neither.
bool hands_on(const torch::jit::Node* user);

bool gives_booleans(std::string_view op);
bool gives_indices(std::string_view op);  // int64, whatever it is given
bool gives_dtype_of_first(
    std::string_view op);  // embedding, index, masked_fill, in-place operators
bool gives_floats_of_integers(std::string_view op);  // div, sqrt, softmax, …
bool makes_tensors(std::string_view op);             // arange, zeros, … of no tensor
// Whether it makes them in the default floating dtype if it is given none: not of integers.
bool makes_default_floats(const torch::jit::Node* node);

bool float_scalar_among(const torch::jit::Node* node);  // its inputs

// The position of an argument of this name; none: the operator has none.
std::optional<std::size_t> argument_index(const torch::jit::Node* node, std::string_view name);

// The integer that is a dtype, where a constant says so.
std::optional<at::ScalarType> dtype_constant(const torch::jit::Node* node, std::size_t input);

bool is_floating(at::ScalarType dtype);  // of one to eight bytes, no complex

}  // namespace twinkle::runtime
