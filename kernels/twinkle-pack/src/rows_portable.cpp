// Any CPU, in GCC's and Clang's vector extension: SSE2 and NEON do four floats or two doubles at a
// time.
#include "half.h"
#include "row_functions.h"

namespace twinkle_pack {
namespace {

#include "row_loops.h"
#include "vector_extension.h"

using F = VectorExtension<float, int32_t, 16>;
using D = VectorExtension<double, int64_t, 16>;
using BriefD = VectorExtension<double, int64_t, 16, true>;

RowFunctions all_row_functions() {
    RowFunctions functions = float_row_functions<F, BriefD, D>("portable");
    functions.rms_norm[0][3] = rms_norm_row<D, float, double, double>;
    functions.rms_norm[1][3] = rms_norm_row<D, BFloat16, double, double>;
    functions.rms_norm[2][3] = rms_norm_row<D, Float16, double, double>;
    functions.rms_norm[3][0] = rms_norm_row<D, double, float, double>;
    functions.rms_norm[3][1] = rms_norm_row<D, double, BFloat16, double>;
    functions.rms_norm[3][2] = rms_norm_row<D, double, Float16, double>;
    functions.rms_norm[3][3] = rms_norm_row<D, double, double, double>;
    functions.silu_mul[3] = silu_mul_row<D, double>;
    functions.rms_norm_backward[0][3] = rms_norm_backward<D, float, double, double>();
    functions.rms_norm_backward[1][3] = rms_norm_backward<D, BFloat16, double, double>();
    functions.rms_norm_backward[2][3] = rms_norm_backward<D, Float16, double, double>();
    functions.rms_norm_backward[3][0] = rms_norm_backward<D, double, float, double>();
    functions.rms_norm_backward[3][1] = rms_norm_backward<D, double, BFloat16, double>();
    functions.rms_norm_backward[3][2] = rms_norm_backward<D, double, Float16, double>();
    functions.rms_norm_backward[3][3] = rms_norm_backward<D, double, double, double>();
    functions.silu_mul_backward[3] = silu_mul_backward_row<D, double>;
    return functions;
}

}  // namespace

const RowFunctions& portable_row_functions() {
    static const RowFunctions functions = all_row_functions();
    return functions;
}

}  // namespace twinkle_pack
