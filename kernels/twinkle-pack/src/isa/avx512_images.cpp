// AVX-512 (F, BW, DQ, VL): convolutions and pooling.
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

void add_avx512_images(RowFunctions& functions) {
    add_convolutions<Avx512, Outer512, float, BFloat16, Float16>(functions);
    add_last_convolutions<Avx512, LastProducts512>(functions);
    add_winograd<Avx512, LastProducts512>(functions);
}

}  // namespace twinkle_pack
