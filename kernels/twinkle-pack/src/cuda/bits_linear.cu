// Linear layers with packed weights: which kernel computes one, by its sizes, as measured on an
// H200 (bench/results/gpu_bits.md).
#include "cuda/bits_linear.h"

#include "cuda/bits_launch.h"
#include "cuda/bits_strip_ways.h"
#include "cuda/families.h"
#include "cuda/fp8_ways.h"

namespace twinkle_pack::cuda {
namespace {

// For up to so many rows and terms of each; some on Hopper alone, whose shared memory is large.
struct Way {
    int64_t rows, depth;
    bool hopper;
    void (*launch)(const BitsArguments& a, const Card& card, void* stream);
};
struct Ways {
    const Way* first;
    int count;
};

constexpr int64_t any = INT64_MAX;

// Weights in blocks, which the copy engine brings, by one row of x, if that fits in shared memory:
// 8 KiB of values are under way for each warp. There is none for others.
template <class T, class W>
constexpr Way supplied() {
    if constexpr (W::grouped && !std::is_same_v<T, float>)
        return {1, most_supplied_depth(1), true,
                launch_bits<T, SupplyShape<W, 1, 12, 128 / W::bytes_of_group, 2>>};
    else
        return {0, 0, true, nullptr};
}

// Of more rows, where others (bits_strips.h) do not serve: of float32, and on other GPUs than
// Hopper. Not of fp8, which rounds so many.
template <class T, class W>
constexpr Way of_more_rows() {
    if constexpr (W::grouped)
        return {64, any, false, launch_bits<T, BitsShape<W, 8, 8, 1, 1>>};
    else
        return {0, 0, true, nullptr};
}

// The first that fits is taken. Few: for a tile of eight rows.
template <class T, class W, class Few = W>
Ways ways() {
    constexpr bool is_small =
        std::is_same_v<Few, Int4Weights> || std::is_same_v<Few, Fp8Weights<64>>;
    // Where 64 registers are enough for a thread.
    constexpr int resident = is_small && !std::is_same_v<T, float> ? 2 : 1;
    static constexpr Way all[] = {
        supplied<T, Few>(),
        {8, any, false, launch_bits<T, BitsShape<Few, 1, 16, 1, resident>>},
        {16, any, false, launch_bits<T, BitsShape<W, 2, 16, 1, 1>>},
        {32, any, false, launch_bits<T, BitsShape<W, 4, 16, 1, 1>>},
        of_more_rows<T, W>(),
    };
    return {all, sizeof all / sizeof *all};
}

template <class T>
Ways ways_of(Packing packing, int64_t depth) {
    switch (packing) {
        case Packing::int8: return ways<T, Int8Weights>();
        case Packing::int4: return ways<T, Int4Weights>();
        case Packing::fp8:
            return depth % 128 == 0 ? ways<T, Fp8Weights<64>, Fp8Weights<128>>()
                                    : ways<T, Fp8Weights<64>>();
    }
    return {nullptr, 0};
}

Ways ways_of(const PackedLayer& layer) {
    switch (layer.dtype) {
        case DType::float32: return ways_of<float>(layer.packing, layer.depth);
        case DType::bfloat16: return ways_of<BFloat16>(layer.packing, layer.depth);
        case DType::float16: return ways_of<Float16>(layer.packing, layer.depth);
        default: return {nullptr, 0};
    }
}

const Way* way_of(const PackedLayer& layer, const Card& card) {
    const Ways ways = ways_of(layer);
    for (const Way* way = ways.first; way != ways.first + ways.count; ++way)
        if (layer.rows <= way->rows && layer.depth <= way->depth && (card.hopper || !way->hopper))
            return way;
    return nullptr;
}

// By other kernels than those above.
bool by_strips(const PackedLayer& layer, const Card& card) {
    return card.hopper && strips_serve(layer);
}

}  // namespace

bool serves(const PackedLayer& layer, int device) {
    constexpr int64_t most = int64_t{1} << 27, most_x = int64_t{1} << 31;
    constexpr int64_t most_weights = int64_t{1} << 38;  // 2048 in a group of a tile, for 16 warps
    return layer.rows > 0 && layer.outputs > 0 && layer.outputs < most &&
           layer.outputs % block_outputs == 0 && layer.depth > 0 && layer.depth < most &&
           layer.depth % 64 == 0 && layer.outputs <= most_weights / layer.depth &&
           (way_of(layer, card(device)) || by_strips(layer, card(device))) &&
           layer.rows * layer.depth * element_size(layer.dtype) < most_x && at_vectors(layer.x) &&
           at_vectors(layer.values) && at_vectors(layer.scales) && card(device).cluster_blocks > 1;
}

void launch_packed(const PackedLayer& layer, const Queue& queue) {
    const Card on = card(queue.device);
    if (by_strips(layer, on))
        launch_strips(layer, queue);
    else
        way_of(layer, on)->launch(BitsArguments::of(layer), on, queue.stream);
}

namespace {

// Of inputs that have passed the operator's checks.
template <Packing packing>
PackedLayer layer_of(const Inputs& in) {
    const View &x = in.tensors[0], &values = in.tensors[1];
    PackedLayer layer{
        packing, dtype_of(x), x.data,          values.data,  in.tensors[2].data, in.tensors[3].data,
        nullptr, 1,           values.sizes[0], x.last_size()};
    for (int64_t d = 0; d + 1 < x.dims; ++d) layer.rows *= x.sizes[d];
    return layer;
}

// Of fp8 and more rows than this, x is rounded, too: read as 16 bits, its rows would take longer
// than the weight.
constexpr int64_t few_rows = 32;

template <Packing packing>
bool rounds_rows(const PackedLayer& layer) {
    return packing == Packing::fp8 && layer.rows > few_rows && layer.outputs % 16 == 0;
}

template <Packing packing>
bool serves_inputs(const Inputs& in, int device) {
    if (!in.tensors[0].is_contiguous() || !in.tensors[3].is_contiguous()) return false;
    const PackedLayer layer = layer_of<packing>(in);
    return rounds_rows<packing>(layer) ? fp8_products_serve(layer, device) : serves(layer, device);
}

template <Packing packing>
int64_t workspace(const Inputs& in) {
    const PackedLayer layer = layer_of<packing>(in);
    return rounds_rows<packing>(layer) ? fp8_workspace(layer) : 0;
}

template <Packing packing>
void launch_inputs(const Inputs& in, const Plan&, void* const* results, const Queue& queue) {
    PackedLayer layer = layer_of<packing>(in);
    layer.y = results[0];
    if (rounds_rows<packing>(layer))
        launch_fp8_products(layer, queue);
    else
        launch_packed(layer, queue);
}

// By LibTorch, whose results are of bfloat16; on GPUs that multiply fp8.
template <Packing packing>
bool rounds_inputs(const Inputs& in, int device) {
    const PackedLayer layer = layer_of<packing>(in);
    return rounds_rows<packing>(layer) && layer.dtype == DType::bfloat16 &&
           card(device).cluster_blocks > 1;
}

template <Packing packing>
constexpr Kernel kernel(const char* name) {
    return {name, launch_inputs<packing>, workspace<packing>, serves_inputs<packing>,
            rounds_inputs<packing>};
}

}  // namespace

KernelList bits_linear_kernels() {
    static constexpr Kernel all[] = {kernel<Packing::int8>("linear_int8"),
                                     kernel<Packing::int4>("linear_int4"),
                                     kernel<Packing::fp8>("linear_fp8")};
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack::cuda
