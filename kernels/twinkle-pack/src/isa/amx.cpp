// AMX, which multiplies tiles of matrices: of bfloat16, and of bytes.
#include <immintrin.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "half.h"
#include "isa/functions.h"

namespace twinkle_pack {
namespace {

// clang-format off
#include "loops/all.h"
#include "isa/vector_extension.h"
#include "isa/avx512_vector.h"
#include "isa/avx512_linear.h"
#include "isa/avx512_bf16_vector.h"
#include "isa/amx_tiles.h"

inline __m512i load_some(const BFloat16* from, int64_t n) {
    return _mm512_maskz_loadu_epi16((__mmask32)((uint64_t{1} << n) - 1), from);
}

#include "isa/amx_linear.h"
#include "isa/amx_next.h"
#include "isa/amx_packed.h"
#include "isa/amx_conv.h"
#include "isa/amx_bits.h"
// clang-format on

}  // namespace

bool may_use_amx() {
    // ARCH_REQ_XCOMP_PERM for the data of tiles: Linux asks every process to ask.
    constexpr int request = 0x1023, tile_data = 18;
    return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
           __builtin_cpu_supports("amx-int8") && ::syscall(SYS_arch_prctl, request, tile_data) == 0;
}

void add_amx(RowFunctions& functions) {
    functions.isa = "amx";
    constexpr int bfloat16 = index_of<BFloat16>;
    functions.pack_tiles[bfloat16] = pack_row_tiles;
    functions.linear_tiles[bfloat16] = linear_tiles<Avx512Bf16>;
    functions.linear_borders[bfloat16] = rules::linear_bf16_amx;
    functions.linear_panel_tiles[bfloat16] = linear_panel_tiles<Avx512Bf16>;
    static_assert(PanelLayer<Avx512Bf16>::scratch_bytes <= tiles_scratch);
    // Without tiles LibTorch's, by oneDNN, take a third to two thirds of the time (measured on a
    // Xeon, 1 to 16 threads). One channel by itself has nothing to multiply in tiles.
    functions.conv_dense[bfloat16] = nullptr;
    functions.conv_tiles[bfloat16] = conv_by_tiles<Avx512Bf16>;
    functions.plain_tiles_are_libtorchs[bfloat16] = true;
    add_bits_tiles<Avx512, float>(functions);
    add_bits_tiles<Avx512Bf16, BFloat16>(functions);
    add_bits_tiles<Avx512, Float16>(functions);
    static_assert(TiledLayer<Avx512Bf16>::scratch_bytes <= tiles_scratch);
}

}  // namespace twinkle_pack
