// AVX2, FMA and F16C: rows of numbers. Products and images are files of their own, as each
// takes long to compile.
#include <immintrin.h>

#include "half.h"
#include "isa/functions.h"

namespace twinkle_pack {
namespace {

// clang-format off
#include "loops/all.h"
#include "isa/vector_extension.h"
#include "isa/avx2_vector.h"
// clang-format on

}  // namespace

void add_avx2(RowFunctions& functions) {
    add_float_functions<Avx2, VectorExtension<double, int64_t, 32, true>>(functions, "avx2");
    add_avx2_products(functions);
    add_avx2_images(functions);
}

}  // namespace twinkle_pack
