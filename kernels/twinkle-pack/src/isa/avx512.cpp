// AVX-512 (F, BW, DQ, VL): rows of numbers. Products and images are files of their own, as each
// takes long to compile.
#include <immintrin.h>

#include "half.h"
#include "isa/functions.h"

namespace twinkle_pack {
namespace {

// clang-format off
#include "loops/all.h"
#include "isa/vector_extension.h"
#include "isa/avx512_vector.h"
// clang-format on

}  // namespace

void add_avx512(RowFunctions& functions) {
    add_float_functions<Avx512, VectorExtension<double, int64_t, 64, true>>(functions, "avx512");
    add_avx512_products(functions);
    add_avx512_images(functions);
}

}  // namespace twinkle_pack
