// Chooses the instruction set, once per process.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "isa/functions.h"

namespace twinkle_pack {
namespace {

struct Isa {
    const char* name;
    void (*add)(RowFunctions&);
    bool (*is_there)();
};

// Narrowest first: each builds on those before it.
constexpr Isa all[] = {
    {"portable", add_portable, [] { return true; }},
#ifdef TWINKLE_PACK_X86
    {"avx2", add_avx2,
     [] {
         return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                __builtin_cpu_supports("f16c");
     }},
    {"avx512", add_avx512,
     [] {
         return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
     }},
    {"avx512vnni", add_avx512_vnni, [] { return __builtin_cpu_supports("avx512vnni") != 0; }},
    {"avx512bf16", add_avx512_bf16, [] { return __builtin_cpu_supports("avx512bf16") != 0; }},
    {"amx", add_amx, may_use_amx},
#endif
};

RowFunctions choose() {
#ifdef TWINKLE_PACK_X86
    __builtin_cpu_init();
#endif
    const char* wanted = std::getenv("TWINKLE_PACK_ISA");
    if (wanted && !*wanted) wanted = nullptr;
    RowFunctions functions{};
    for (const Isa& isa : all) {
        if (!isa.is_there()) break;
        isa.add(functions);
        if (wanted && std::string(wanted) == isa.name) {
            // For tests: all that there is, whatever pays on this CPU.
            for (LinearBorders& borders : functions.linear_borders)
                if (borders.few > 0) borders.many = rules::any_rows;
            for (int64_t& rows : functions.attention_least_rows) rows = 1;
            for (bool& are : functions.plain_tiles_are_libtorchs) are = false;
            return functions;
        }
    }
    if (wanted)
        throw std::runtime_error(std::string("twinkle-pack: TWINKLE_PACK_ISA=") + wanted +
                                 ": this CPU or this build has no such instruction set "
                                 "(portable, avx2, avx512, avx512vnni, avx512bf16, amx)");
    return functions;
}

}  // namespace

const RowFunctions& row_functions() {
    static const RowFunctions chosen = choose();
    return chosen;
}

}  // namespace twinkle_pack
