// Launches of linear layers with packed weights, to choose from, for bench/gpu_bits_launches.py,
// which loads this by ctypes. Compiled once for each ACROSS: 1, 2, 4, 8 tiles of eight rows of x.
#include <exception>

#include "cuda/bits_linear.h"
#include "cuda/bits_tiles.h"
#include "cuda/linear_launch.h"

using namespace twinkle_pack;
using namespace twinkle_pack::cuda;

namespace {

template <class W, int output_warps, int inner_warps, int depth>
void launch(const BitsArguments& a, const Layout& layout, const Card& card, void* stream) {
    using Shape = BitsShape<W, ACROSS, output_warps, inner_warps, depth>;
    launch_tiles<Shape>(bits_tiles<BFloat16, Shape>, a, layout, card, stream);
}

struct Launch {
    const char* name;
    void (*of[3])(const BitsArguments&, const Layout&, const Card&, void*);  // by Packing
};

#define LAUNCH(output_warps, inner_warps, depth)                       \
    {                                                                  \
        #output_warps "," #inner_warps "," #depth, {                   \
            launch<Int8Weights, output_warps, inner_warps, depth>,     \
                launch<Int4Weights, output_warps, inner_warps, depth>, \
                launch<Fp8Weights, output_warps, inner_warps, depth>   \
        }                                                              \
    }

const Launch launches[] = {
#if ACROSS == 1
    LAUNCH(1, 8, 1),  LAUNCH(1, 8, 2), LAUNCH(1, 8, 4), LAUNCH(1, 16, 1),
    LAUNCH(1, 16, 2), LAUNCH(1, 4, 4), LAUNCH(2, 4, 2), LAUNCH(2, 8, 2),
    LAUNCH(1, 4, 2),  LAUNCH(4, 4, 2), LAUNCH(4, 2, 2),
#elif ACROSS == 2
    LAUNCH(1, 8, 1), LAUNCH(1, 8, 2), LAUNCH(1, 16, 1), LAUNCH(2, 4, 2), LAUNCH(2, 8, 1),
    LAUNCH(2, 8, 2), LAUNCH(4, 4, 1), LAUNCH(4, 2, 2),  LAUNCH(1, 4, 2),
#elif ACROSS == 4
    LAUNCH(1, 8, 1), LAUNCH(1, 8, 2), LAUNCH(2, 4, 1), LAUNCH(2, 4, 2),
    LAUNCH(2, 8, 1), LAUNCH(4, 2, 2), LAUNCH(4, 4, 1), LAUNCH(8, 2, 1),
#else
    LAUNCH(1, 8, 1), LAUNCH(2, 4, 1), LAUNCH(4, 2, 1), LAUNCH(4, 4, 1),
    LAUNCH(8, 1, 1), LAUNCH(2, 8, 1), LAUNCH(8, 2, 1),
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

// 1: launched; 0: the GPU has no room for it.
int run(int i, int packing, const void* x, const void* values, const void* scales, void* y,
        int64_t rows, int64_t outputs, int64_t depth, int cluster_bits, int blocks, int early,
        void* stream, int device) {
    BitsArguments a{};
    a.x = static_cast<const char*>(x);
    a.weight = static_cast<const char*>(values);
    a.scales = static_cast<const float*>(scales);
    a.y = y;
    a.tokens = static_cast<uint32_t>(rows);
    a.outputs = static_cast<uint32_t>(outputs);
    const auto how = static_cast<Packing>(packing);
    a.inner_bytes = static_cast<uint32_t>(how == Packing::int4 ? depth / 2 : depth);
    a.groups = how == Packing::fp8 ? 0 : static_cast<uint32_t>(depth / 64);
    const Layout layout{static_cast<uint32_t>(cluster_bits), static_cast<uint32_t>(blocks),
                        static_cast<uint32_t>(early)};
    try {
        launches[i].of[packing](a, layout, card(device), stream);
        return 1;
    } catch (const std::exception&) {
        return 0;
    }
}
}
