// Chooses the instruction set, once per process.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "row_functions.h"

namespace twinkle_pack {
namespace {

bool cpu_has(const std::string& isa) {
#ifdef TWINKLE_PACK_X86
    __builtin_cpu_init();
    if (isa == "avx2")
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
               __builtin_cpu_supports("f16c");
    if (isa == "avx512")
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
    return isa == "portable";
}

RowFunctions functions_of(const std::string& isa) {
    RowFunctions functions = portable_row_functions();
#ifdef TWINKLE_PACK_X86
    if (isa == "portable") return functions;
    const RowFunctions& wide = isa == "avx2" ? avx2_row_functions() : avx512_row_functions();
    functions.isa = wide.isa;
    functions.fence = wide.fence;
    for (int x = 0; x < dtype_count; ++x) {
        if (wide.silu_mul[x]) functions.silu_mul[x] = wide.silu_mul[x];
        if (wide.silu_mul_backward[x]) functions.silu_mul_backward[x] = wide.silu_mul_backward[x];
        for (int w = 0; w < dtype_count; ++w) {
            if (wide.rms_norm[x][w]) functions.rms_norm[x][w] = wide.rms_norm[x][w];
            if (wide.rms_norm_backward[x][w].row)
                functions.rms_norm_backward[x][w] = wide.rms_norm_backward[x][w];
        }
    }
#else
    (void)isa;
#endif
    return functions;
}

RowFunctions choose() {
    if (const char* wanted = std::getenv("TWINKLE_PACK_ISA"); wanted && *wanted) {
        if (!cpu_has(wanted))
            throw std::runtime_error(std::string("twinkle-pack: TWINKLE_PACK_ISA=") + wanted +
                                     ": this CPU or this build has no such instruction set "
                                     "(portable, avx2, avx512)");
        return functions_of(wanted);
    }
    for (const char* isa : {"avx512", "avx2"})
        if (cpu_has(isa)) return functions_of(isa);
    return functions_of("portable");
}

}  // namespace

const RowFunctions& row_functions() {
    static const RowFunctions chosen = choose();
    return chosen;
}

}  // namespace twinkle_pack
