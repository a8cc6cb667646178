// AVX2, FMA and F16C: convolutions and pooling.
#include <immintrin.h>

#include "half.h"
#include "isa/functions.h"

namespace twinkle_pack {
namespace {

// clang-format off
#include "loops/all.h"
#include "isa/vector_extension.h"
#include "isa/avx2_vector.h"
#include "isa/avx2_linear.h"
// clang-format on

}  // namespace

void add_avx2_images(RowFunctions& functions) {
    add_convolutions<Avx2, Outer256, float, BFloat16, Float16>(functions);
    add_last_convolutions<Avx2, LastProducts256>(functions);
    add_winograd<Avx2, LastProducts256>(functions);
}

}  // namespace twinkle_pack
