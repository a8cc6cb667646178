// Launches of products with packed weights (bits_products.h), to choose from, for
// bench/gpu_bits_launches.py, which loads this by ctypes. Named by tiles of eight rows, teams and
// groups of a step.
#include <exception>

#include "cuda/bits_linear.h"
#include "cuda/bits_product_launch.h"

using namespace twinkle_pack;
using namespace twinkle_pack::cuda;

namespace {

template <class W, int across, int teams, int groups>
constexpr auto launch = launch_products_in<BFloat16, ProductShape<W, across, teams, groups>>;

struct Launch {
    const char* name;
    void (*of[2])(uint32_t cluster_bits, BitsArguments, const Card&, void*);  // by Packing
};

#define LAUNCH(across, teams, groups)                                                              \
    {                                                                                              \
        #across "," #teams "," #groups, {                                                          \
            launch<Int8Weights, across, teams, groups>, launch<Int4Weights, across, teams, groups> \
        }                                                                                          \
    }

const Launch launches[] = {
    LAUNCH(8, 2, 2),  LAUNCH(8, 3, 2),  LAUNCH(16, 2, 2), LAUNCH(16, 3, 2),
    LAUNCH(24, 2, 1), LAUNCH(24, 3, 1), LAUNCH(32, 2, 1),
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
    if (static_cast<Packing>(packing) == Packing::fp8) return 0;
    PackedLayer layer{};
    layer.packing = static_cast<Packing>(packing);
    layer.dtype = DType::bfloat16;
    layer.x = x, layer.values = values, layer.scales = scales, layer.y = y;
    layer.rows = rows, layer.outputs = outputs, layer.depth = depth;
    try {
        launches[i].of[packing](static_cast<uint32_t>(cluster_bits), BitsArguments::of(layer),
                                card(device), static_cast<cudaStream_t>(stream));
        return 1;
    } catch (const std::exception&) {
        return 0;
    }
}
}
