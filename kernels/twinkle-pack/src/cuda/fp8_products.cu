// Linear layers with weights of fp8 and many rows of x: whether and how they are computed, as
// measured on an H200 (bench/results/gpu_bits.md).
#include "cuda/cluster_room.h"
#include "cuda/fp8_launch.h"
#include "cuda/fp8_ways.h"
#include "cuda/rounding.h"

namespace twinkle_pack::cuda {
namespace {

// Where LibTorch's product is slower: up to so many rows and outputs, of so many terms at least. It
// has too few blocks for few outputs, and does not divide sums.
struct Served {
    int64_t rows, outputs, depth;
};
constexpr int64_t any = INT64_MAX;
constexpr Served served[] = {{64, any, 0},       {128, 5120, 0}, {192, 4096, 0},
                             {256, 4096, 16384}, {256, 1024, 0}, {512, 512, 0}};

bool is_faster(const PackedLayer& layer) {
    if (layer.dtype != DType::bfloat16) return true;  // LibTorch has no other results
    for (const Served& one : served)
        if (layer.rows <= one.rows && layer.outputs <= one.outputs && layer.depth >= one.depth)
            return true;
    return false;
}

// In some 0.8 ns: of all blocks that follow one another on a multiprocessor.
template <class Shape>
uint64_t fp8_time(const Fp8Arguments& a, const Card& card, uint32_t cluster_bits) {
    const uint64_t clusters =
        quotient_up(a.outputs, Shape::outputs) * quotient_up(a.rows, Shape::rows);
    const uint64_t steps =
        quotient_up(quotient_up(a.depth, Shape::step), uint64_t{1} << cluster_bits);
    uint64_t time = steps * (4 * Shape::rows + 5 * Shape::outputs) + 2000;
    if (cluster_bits > 0) time += Shape::rows * Shape::outputs * 13 / 20 + 1000 * cluster_bits;
    return quotient_up(clusters, clusters_with_room(card, cluster_bits)) * time;
}

struct Fp8Way {
    void (*launch)(uint32_t cluster_bits, Fp8Arguments a, const Card& card, void* stream);
    uint32_t cluster_bits;
    uint64_t time;
};

template <class Shape>
void take_faster(const Fp8Arguments& a, const Card& card, Fp8Way& best) {
    for (uint32_t bits = 0; bits <= 3 && 1u << bits <= card.cluster_blocks; ++bits) {
        if (quotient_up(a.depth, Shape::step) >> bits == 0) break;
        const uint64_t time = fp8_time<Shape>(a, card, bits);
        if (time < best.time) best = {launch_fp8_in<Shape>, bits, time};
    }
}
template <int... pieces>
Fp8Way fastest(const Fp8Arguments& a, const Card& card) {
    Fp8Way best{nullptr, 0, UINT64_MAX};
    (take_faster<Fp8Shape<1, pieces>>(a, card, best), ...);
    (take_faster<Fp8Shape<2, pieces>>(a, card, best), ...);
    (take_faster<Fp8Shape<4, pieces>>(a, card, best), ...);
    return best;
}

}  // namespace

bool fp8_products_serve(const PackedLayer& layer, int device) {
    constexpr int64_t most = int64_t{1} << 27;
    return card(device).hopper && layer.rows > 0 && layer.rows < most && layer.outputs > 0 &&
           layer.outputs < most && layer.outputs % 16 == 0 && layer.depth > 0 &&
           layer.depth < most && at_vectors(layer.values) && is_faster(layer);
}

int64_t fp8_workspace(const PackedLayer& layer) {
    return layer.rows * (layer.depth + static_cast<int64_t>(sizeof(float)));
}

void launch_fp8_products(const PackedLayer& layer, const Queue& queue) {
    char* const x = static_cast<char*>(queue.workspace);
    auto* const x_scales = reinterpret_cast<float*>(x + layer.rows * layer.depth);
    launch_rounding({layer.dtype, layer.x, x, x_scales, layer.rows, layer.depth}, queue);
    Fp8Arguments a{};
    a.x = x;
    a.weight = static_cast<const char*>(layer.values);
    a.x_scales = x_scales;
    a.scales = static_cast<const float*>(layer.scales);
    a.bias = layer.bias;
    a.y = layer.y;
    a.dtype = layer.dtype;
    a.rows = static_cast<uint32_t>(layer.rows);
    a.outputs = static_cast<uint32_t>(layer.outputs);
    a.depth = static_cast<uint32_t>(layer.depth);
    const Card on = card(queue.device);
    const Fp8Way way = fastest<32, 48, 64, 72>(a, on);
    way.launch(way.cluster_bits, a, on, queue.stream);
}

}  // namespace twinkle_pack::cuda
