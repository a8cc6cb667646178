#pragma once
// The inner loops, one table of them for each instruction set.

#include <cstdint>

namespace twinkle_pack {

constexpr int dtype_count = 4;  // in the order of DType

// One row of n elements. Pointers need no alignment. `next_row` is what x will be in the next call.
using RmsNormRow = void (*)(const void* x, const void* next_row, const void* weight, void* result,
                            int64_t n, double eps);
// `stream`: the result may be stored past the cache (float32 alone gains); whoever asked for that
// calls `fence` before other threads read it.
using SiluMulRow = void (*)(const void* gate, const void* up, void* result, int64_t n, bool stream);

struct RowFunctions {
    const char* isa;
    void (*fence)();
    RmsNormRow rms_norm[dtype_count][dtype_count];  // [dtype of x][dtype of weight]
    SiluMulRow silu_mul[dtype_count];
};

// The widest instruction set of this CPU, or the one that the environment variable TWINKLE_PACK_ISA
// names (portable, avx2, avx512): std::runtime_error where this CPU or this build lacks it.
const RowFunctions& row_functions();

const RowFunctions& portable_row_functions();
#ifdef TWINKLE_PACK_X86
// Without float64, for which the portable loops serve.
const RowFunctions& avx2_row_functions();
const RowFunctions& avx512_row_functions();
#endif

}  // namespace twinkle_pack
