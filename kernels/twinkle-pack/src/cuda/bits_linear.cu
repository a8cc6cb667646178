// Linear layers with packed weights: which kernel computes one, by its sizes, as measured on an
// H100 (bench/results/gpu_bits.md).
#include "cuda/bits_linear.h"

#include "cuda/bits_tiles.h"
#include "cuda/families.h"
#include "cuda/linear_launch.h"

namespace twinkle_pack::cuda {
namespace {

template <class T, class Shape>
void launch_shape(const BitsArguments& given, const Layout& layout, const Card& card,
                  void* stream) {
    launch_tiles<Shape>(bits_tiles<T, Shape>, given, layout, card, stream);
}

// The first that fits is taken.
template <class T, class W>
Ways<BitsArguments> ways() {
    static constexpr Way<BitsArguments> all[] = {
        {8, 8191, launch_shape<T, BitsShape<W, 1, 1, 16, 1>>, {0, 1, 1024}},
        {8, any, launch_shape<T, BitsShape<W, 1, 4, 4, 2>>, {0, 1, 1024}},
        {16, 8191, launch_shape<T, BitsShape<W, 2, 1, 8, 1>>, {1, 2, 1024}},
        {16, any, launch_shape<T, BitsShape<W, 2, 4, 4, 1>>, {0, 1, 1024}},
        {32, 8191, launch_shape<T, BitsShape<W, 4, 2, 8, 1>>, {1, 1, 1024}},
        {32, any, launch_shape<T, BitsShape<W, 4, 4, 4, 1>>, {0, 1, 1024}},
        {64, 8191, launch_shape<T, BitsShape<W, 8, 2, 4, 1>>, {1, 1, 1024}},
        {64, any, launch_shape<T, BitsShape<W, 8, 4, 2, 1>>, {0, 1, 1024}},
    };
    return {all, sizeof all / sizeof *all};
}

template <class T>
Ways<BitsArguments> ways_of(Packing packing) {
    switch (packing) {
        case Packing::int8: return ways<T, Int8Weights>();
        case Packing::int4: return ways<T, Int4Weights>();
        case Packing::fp8: return ways<T, Fp8Weights>();
    }
    return {nullptr, 0};
}

Ways<BitsArguments> ways_of(const PackedLayer& layer) {
    switch (layer.dtype) {
        case DType::float32: return ways_of<float>(layer.packing);
        case DType::bfloat16: return ways_of<BFloat16>(layer.packing);
        case DType::float16: return ways_of<Float16>(layer.packing);
        default: return {nullptr, 0};
    }
}

const Way<BitsArguments>* way_of(const PackedLayer& layer) {
    return ways_of(layer).of(layer.rows, layer.outputs);
}

int64_t row_bytes(const PackedLayer& layer) {
    return layer.packing == Packing::int4 ? layer.depth / 2 : layer.depth;
}

}  // namespace

bool serves(const PackedLayer& layer, int device) {
    constexpr int64_t most = int64_t{1} << 27;
    return layer.rows > 0 && layer.outputs > 0 && layer.outputs < most &&
           layer.outputs % BitsShape<Int8Weights, 1, 1, 1, 1>::outputs_apart == 0 &&
           layer.depth > 0 && layer.depth < most && layer.depth % 64 == 0 && way_of(layer) &&
           at_vectors(layer.x) && at_vectors(layer.values) && at_vectors(layer.scales) &&
           card(device).cluster_blocks > 1;
}

void launch_packed(const PackedLayer& layer, const Queue& queue) {
    const Way<BitsArguments>& way = *way_of(layer);
    BitsArguments a{};
    a.x = static_cast<const char*>(layer.x);
    a.weight = static_cast<const char*>(layer.values);
    a.scales = static_cast<const float*>(layer.scales);
    a.bias = layer.bias;
    a.y = layer.y;
    a.tokens = static_cast<uint32_t>(layer.rows);
    a.outputs = static_cast<uint32_t>(layer.outputs);
    a.inner_bytes = static_cast<uint32_t>(row_bytes(layer));
    a.groups = layer.packing == Packing::fp8 ? 0 : static_cast<uint32_t>(layer.depth / 64);
    way.launch(a, way.layout, card(queue.device), queue.stream);
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

template <Packing packing>
bool serves_inputs(const Inputs& in, int device) {
    return in.tensors[0].is_contiguous() && in.tensors[3].is_contiguous() &&
           serves(layer_of<packing>(in), device);
}

template <Packing packing>
void launch_inputs(const Inputs& in, const Plan&, void* const* results, const Queue& queue) {
    PackedLayer layer = layer_of<packing>(in);
    layer.y = results[0];
    launch_packed(layer, queue);
}

template <Packing packing>
constexpr Kernel kernel(const char* name) {
    return {name, launch_inputs<packing>, nullptr, serves_inputs<packing>};
}

}  // namespace

KernelList bits_linear_kernels() {
    static constexpr Kernel all[] = {kernel<Packing::int8>("linear_int8"),
                                     kernel<Packing::int4>("linear_int4"),
                                     kernel<Packing::fp8>("linear_fp8")};
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack::cuda
