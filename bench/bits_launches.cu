// Launches of linear layers with packed weights, to choose from, for bench/gpu_bits_launches.py,
// which loads this by ctypes. Compiled once for each ACROSS: 1, 2, 4, 8 tiles of eight rows of x.
// Named by warps, groups ahead and blocks of a multiprocessor; where the copy engine brings weights
// (int8 and int4), by warps, KiB of a stage's values and stages.
// FP8_GROUP: 64 or 128 terms of fp8 at a time.
#include <cstring>
#include <exception>

#include "cuda/bits_launch.h"
#include "cuda/bits_linear.h"

using namespace twinkle_pack;
using namespace twinkle_pack::cuda;

namespace {

#ifdef FP8_GROUP
constexpr unsigned fp8_group = FP8_GROUP;
#else
constexpr unsigned fp8_group = ACROSS == 1 ? 128 : 64;
#endif

template <class W, int warps, int ahead, int resident>
constexpr auto launch = launch_bits_in<BFloat16, BitsShape<W, ACROSS, warps, ahead, resident>>;

template <class W, int warps, int kib, int stages>
constexpr auto supplied =
    launch_bits_in<BFloat16, SupplyShape<W, ACROSS, warps, kib * 32 / W::bytes_of_group, stages>>;

struct Launch {
    const char* name;
    void (*of[3])(uint32_t cluster_bits, BitsArguments, const Card&, void*);  // by Packing
};

#define LAUNCH(warps, ahead, resident)                                \
    {                                                                 \
        #warps "," #ahead "," #resident, {                            \
            launch<Int8Weights, warps, ahead, resident>,              \
                launch<Int4Weights, warps, ahead, resident>,          \
                launch<Fp8Weights<fp8_group>, warps, ahead, resident> \
        }                                                             \
    }

#define SUPPLIED(warps, kib, stages)                                                              \
    {                                                                                             \
        "supplied " #warps "," #kib "," #stages, {                                                \
            supplied<Int8Weights, warps, kib, stages>, supplied<Int4Weights, warps, kib, stages>, \
                nullptr                                                                           \
        }                                                                                         \
    }

const Launch launches[] = {
#if ACROSS == 1
    LAUNCH(8, 1, 1), LAUNCH(8, 1, 2),    LAUNCH(8, 1, 3),   LAUNCH(8, 1, 4),
    LAUNCH(8, 2, 2), LAUNCH(8, 2, 3),    LAUNCH(16, 1, 1),  LAUNCH(16, 1, 2),
    LAUNCH(4, 1, 6), SUPPLIED(12, 4, 2), SUPPLIED(8, 4, 3), SUPPLIED(12, 2, 3),
#elif ACROSS == 2
    LAUNCH(8, 1, 1), LAUNCH(8, 1, 2), LAUNCH(8, 1, 3), LAUNCH(8, 2, 2), LAUNCH(16, 1, 1),
#elif ACROSS == 4
    LAUNCH(8, 1, 1), LAUNCH(8, 2, 1), LAUNCH(8, 1, 2), LAUNCH(16, 1, 1), LAUNCH(4, 1, 4),
#else
    LAUNCH(8, 1, 1),
    LAUNCH(4, 1, 2),
    LAUNCH(4, 1, 3),
    LAUNCH(4, 2, 2),
#endif
};

}  // namespace

extern "C" {

int count() {
    return sizeof launches / sizeof *launches;
}
const char* name(int i) {
    return launches[i].name;
}

// 1: launched; 0: the GPU has no room for it, or there is no such kernel.
int run(int i, int packing, const void* x, const void* values, const void* scales, void* y,
        int64_t rows, int64_t outputs, int64_t depth, int cluster_bits, void* stream, int device) {
    BitsArguments a{};
    a.x = static_cast<const char*>(x);
    a.weight = static_cast<const char*>(values);
    a.scales = static_cast<const float*>(scales);
    a.y = y;
    a.tokens = static_cast<uint32_t>(rows);
    a.outputs = static_cast<uint32_t>(outputs);
    const auto how = static_cast<Packing>(packing);
    a.row_bytes = static_cast<uint32_t>(how == Packing::int4 ? depth / 2 : depth);
    a.scale_groups = how == Packing::fp8 ? 0 : static_cast<uint32_t>(depth / 64);
    if (!launches[i].of[packing]) return 0;
    if (rows * depth > most_supplied_depth(1) && std::strncmp(name(i), "supplied", 8) == 0)
        return 0;
    try {
        launches[i].of[packing](static_cast<uint32_t>(cluster_bits), a, card(device), stream);
        return 1;
    } catch (const std::exception&) {
        return 0;
    }
}
}
