#pragma once
// What the operators refuse, in words for the person who called them: std::runtime_error.

#include <string>

#include "operator.h"

namespace twinkle_pack {

[[noreturn]] void refuse(const std::string& op, const std::string& why);

std::string shape_text(const View& view);

// Its dtype, which must be one of the four.
DType supported_dtype(const char* op, const char* argument, const View& view);
// a and b have one dtype, which is returned, and one shape.
DType same_kind(const char* op, const char* a_name, const View& a, const char* b_name,
                const View& b);
// x has a last dimension, and this tensor exactly its size.
void check_row(const char* op, const char* argument, const View& row, const View& x);
// The gradient is that of a result of this shape and dtype.
void check_gradient(const char* op, const View& grad, const View& shape, DType dtype);

// The dtype that PyTorch promotes two to.
DType promoted(DType a, DType b);

}  // namespace twinkle_pack
