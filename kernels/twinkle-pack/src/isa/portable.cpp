// Any CPU, in GCC's and Clang's vector extension: SSE2 and NEON do four floats or two doubles at a
// time. Only this file has float64.
#include "half.h"
#include "isa/functions.h"

namespace twinkle_pack {
namespace {

// clang-format off
#include "loops/all.h"
#include "isa/vector_extension.h"
// clang-format on

using F = VectorExtension<float, int32_t, 16>;
using D = VectorExtension<double, int64_t, 16>;
using BriefD = VectorExtension<double, int64_t, 16, true>;

}  // namespace

void add_portable(RowFunctions& functions) {
    add_float_functions<F, BriefD, D>(functions, "portable");
    add_elementwise<D, D, double>(functions);
    add_mixed<D, double, float, BFloat16, Float16, double>(functions);
    add_mixed<D, float, double>(functions);
    add_mixed<D, BFloat16, double>(functions);
    add_mixed<D, Float16, double>(functions);
    add_bits<F, float, PlainBits>(functions);
    add_bits<F, BFloat16, PlainBits>(functions);
    add_bits<F, Float16, PlainBits>(functions);
    // Functions without float64 need only these.
    add_mixed<D, float>(functions);
    add_mixed<F, BFloat16>(functions);
    add_mixed<F, Float16>(functions);
}

}  // namespace twinkle_pack
