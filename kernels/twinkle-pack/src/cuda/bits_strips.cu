// Linear layers with packed weights and more rows of x: which kernel computes one, by its sizes, as
// measured on an H200 (bench/results/gpu_bits.md).
#include "cuda/bits_product_launch.h"
#include "cuda/bits_strip_launch.h"
#include "cuda/bits_strip_ways.h"

namespace twinkle_pack::cuda {
namespace {

// For up to so many rows, outputs and terms of each. `launch` is null where a product with the
// unpacked weight is as fast.
struct StripWay {
    int64_t rows, outputs, depth;
    void (*launch)(const BitsArguments& a, const Card& card, void* stream);
};
constexpr int64_t any = INT64_MAX;

// The first that fits.
template <size_t count>
const StripWay* first_of(const StripWay (&ways)[count], const PackedLayer& layer) {
    for (const StripWay& one : ways)
        if (layer.rows <= one.rows && layer.outputs <= one.outputs && layer.depth <= one.depth)
            return one.launch ? &one : nullptr;
    return nullptr;
}

// Of bfloat16 products with rounded weights (bits_products.h): float16 does not hold small ones,
// and strips multiply exactly.
template <class T, class W>
const StripWay* way(const PackedLayer& layer) {
    if constexpr (std::is_same_v<T, BFloat16>) {
        constexpr auto products = launch_products<T, W>;
        static constexpr StripWay all[] = {
            {384, any, any, products}, {512, 8192, 8192, nullptr}, {512, any, any, products}};
        return first_of(all, layer);
    } else {
        constexpr auto eight = launch_strips_of<T, StripShape<W, 8, 8, 4>>;
        constexpr auto twelve = launch_strips_of<T, StripShape<W, 8, 12, 6>>;
        constexpr auto wide = launch_strips_of<T, StripShape<W, 16, 8, 2>>;
        static constexpr StripWay all[] = {
            {64, 8192, any, eight},     {64, any, any, twelve},  {128, 1024, any, eight},
            {128, 4096, 4096, eight},   {128, any, any, wide},   {192, 1024, any, eight},
            {192, 4096, 4096, nullptr}, {192, any, any, twelve},
        };
        return first_of(all, layer);
    }
}

template <class T>
const StripWay* way_in(const PackedLayer& layer) {
    switch (layer.packing) {
        case Packing::int8: return way<T, Int8Weights>(layer);
        case Packing::int4: return way<T, Int4Weights>(layer);
        default: return nullptr;
    }
}

const StripWay* way_of(const PackedLayer& layer) {
    constexpr int64_t few_rows = 32;
    if (layer.rows <= few_rows) return nullptr;
    switch (layer.dtype) {
        case DType::bfloat16: return way_in<BFloat16>(layer);
        case DType::float16: return way_in<Float16>(layer);
        default: return nullptr;
    }
}

}  // namespace

bool strips_serve(const PackedLayer& layer) {
    return way_of(layer) != nullptr;
}

void launch_strips(const PackedLayer& layer, const Queue& queue) {
    way_of(layer)->launch(BitsArguments::of(layer), card(queue.device), queue.stream);
}

}  // namespace twinkle_pack::cuda
