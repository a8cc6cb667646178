#pragma once
// Weights of 8 and 4 bits (families.h), as arguments of operators.

#include "operator.h"

namespace twinkle_pack {

enum class Packed { int8, int4, fp8 };

// Requires x to be float32, bfloat16 or float16, with a last size that 64 divides.
DType packed_dtype(const char* op, const View& x);
// Requires values and scales to be dense and to fit each other and x.
void check_packed(const char* op, const View& x, const View& values, const View& scales,
                  Packed packed);
void check_bias(const char* op, const View& x, const View& values, const View& bias);

}  // namespace twinkle_pack
