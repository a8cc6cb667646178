#pragma once
// Checks of the operators' arguments. Throw std::runtime_error with words for the caller.

#include <string>

#include "operator.h"

namespace twinkle_pack {

[[noreturn]] void refuse(const std::string& op, const std::string& why);

std::string shape_text(const View& view);

// Returns its dtype, which must be one of the four.
DType supported_dtype(const char* op, const char* argument, const View& view);
// Requires a and b to have one dtype, which is returned, and one shape.
DType same_kind(const char* op, const char* a_name, const View& a, const char* b_name,
                const View& b);
// Requires x to have a last dimension, and this tensor to have exactly its size.
void check_row(const char* op, const char* argument, const View& row, const View& x);
// Requires the gradient to fit a result of this shape and dtype.
void check_gradient(const char* op, const View& grad, const View& shape, DType dtype);

// The dtype to which PyTorch promotes two.
DType promoted(DType a, DType b);

}  // namespace twinkle_pack
