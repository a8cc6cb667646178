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

// The backward of rms_norm. A row adds its part of the weight's gradient to `sums`, n of them;
// there may be several, for parts of the rows: `store` adds them up and rounds the result once.
struct RmsNormBackward {
    void (*row)(const void* grad, const void* x, const void* weight, void* grad_x, double* sums,
                int64_t n, double eps);
    void (*store)(const double* sums, int64_t parts, int64_t n, int64_t begin, int64_t end,
                  void* grad_weight);
};
using SiluMulBackwardRow = void (*)(const void* grad, const void* gate, const void* up,
                                    void* grad_gate, void* grad_up, int64_t n);

struct RowFunctions {
    const char* isa;
    void (*fence)();
    RmsNormRow rms_norm[dtype_count][dtype_count];  // [dtype of x][dtype of weight]
    SiluMulRow silu_mul[dtype_count];
    RmsNormBackward rms_norm_backward[dtype_count][dtype_count];
    SiluMulBackwardRow silu_mul_backward[dtype_count];
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
