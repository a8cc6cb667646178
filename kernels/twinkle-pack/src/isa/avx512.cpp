// AVX-512 (F, BW, DQ, VL).
#include <immintrin.h>

#include "half.h"
#include "isa/functions.h"

namespace twinkle_pack {
namespace {

// clang-format off
#include "loops/all.h"
#include "isa/vector_extension.h"
#include "isa/avx512_vector.h"
#include "isa/avx512_linear.h"
// clang-format on

}  // namespace

void add_avx512(RowFunctions& functions) {
    add_float_functions<Avx512, VectorExtension<double, int64_t, 64, true>>(functions, "avx512");
    // Measured on Zen 4, where LibTorch's products of many rows in float32 do half of what is
    // possible.
    add_linear<float>(functions, {48, 1 << 30});
    add_linear<BFloat16>(functions, {48, 1 << 30});
    add_linear<Float16>(functions, {48, 1 << 30});
}

}  // namespace twinkle_pack
