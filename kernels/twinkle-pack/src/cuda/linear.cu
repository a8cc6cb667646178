// Which kernel computes a linear layer, by its sizes: as measured on an H200
// (bench/results/gpu_linear.md).
#include "cuda/linear.h"

#include "cuda/families.h"
#include "cuda/linear_launch.h"
#include "cuda/linear_tiles.h"

namespace twinkle_pack::cuda {
namespace {

template <class T, class Shape>
void launch_shape(const LinearArguments& given, const Layout& layout, const Card& card,
                  void* stream) {
    launch_tiles<Shape>(linear_tiles<T, Shape>, given, layout, card, stream);
}

// The first that fits is taken.
template <class T>
Ways ways() {
    static constexpr Way all[] = {
        {8, 2640, launch_shape<T, LinearShape<1, 1, 1, 8, 4>>, {0, 1, 2048}},
        {2, any, launch_shape<T, LinearShape<1, 1, 1, 8, 4>>, {0, 2, 2048}},
        {8, 65535, launch_shape<T, LinearShape<1, 1, 1, 8, 4>>, {0, 2, 2048}},
        {16, 2640, launch_shape<T, LinearShape<1, 2, 1, 8, 4>>, {0, 1, 0}},
        {16, 8191, launch_shape<T, LinearShape<2, 2, 1, 8, 4>>, {0, 1, 2048}},
        {16, 65535, launch_shape<T, LinearShape<2, 2, 4, 2, 4>>, {0, 1, 1024}},
        {32, 2640, launch_shape<T, LinearShape<2, 4, 1, 4, 3>>, {1, 1, 1024}},
    };
    return {all, sizeof all / sizeof *all};
}
template <>
Ways ways<float>() {
    static constexpr Way all[] = {
        {1, 4095, nullptr, {}},
        {8, 2640, launch_shape<float, LinearShape<1, 1, 1, 8, 4>>, {0, 1, 2048}},
        {8, 8191, launch_shape<float, LinearShape<1, 1, 1, 8, 4>>, {0, 2, 2048}},
        {8, any, launch_shape<float, LinearShape<2, 1, 1, 8, 5>>, {0, 1, 2048}},
        {16, any, launch_shape<float, LinearShape<4, 2, 1, 4, 4>>, {1, 1, 0}},
        {32, any, launch_shape<float, LinearShape<4, 4, 1, 4, 4>>, {1, 1, 0}},
        {64, any, launch_shape<float, LinearShape<2, 8, 2, 4, 2>>, {1, 1, 0}},
    };
    return {all, sizeof all / sizeof *all};
}

Ways ways_of(DType dtype) {
    switch (dtype) {
        case DType::float32: return ways<float>();
        case DType::bfloat16: return ways<BFloat16>();
        case DType::float16: return ways<Float16>();
        default: return {nullptr, 0};
    }
}

const Way* way_of(const LinearLayer& linear) {
    return ways_of(linear.dtype).of(linear.rows, linear.outputs);
}

}  // namespace

bool serves(const LinearLayer& linear, int device) {
    constexpr int64_t most = int64_t{1} << 31;
    if (linear.rows <= 0 || linear.outputs <= 0 || linear.inner <= 0 || linear.outputs >= most ||
        linear.inner >= most / 8 || !way_of(linear))
        return false;
    return linear.inner * element_size(linear.dtype) % vector_bytes == 0 && at_vectors(linear.x) &&
           at_vectors(linear.weight) && card(device).cluster_blocks > 1;
}

void launch_linear(const LinearLayer& linear, const Queue& queue) {
    const Way& way = *way_of(linear);
    LinearArguments a{};
    a.x = static_cast<const char*>(linear.x);
    a.weight = static_cast<const char*>(linear.weight);
    a.bias = linear.bias;
    a.y = linear.y;
    a.tokens = static_cast<uint32_t>(linear.rows);
    a.outputs = static_cast<uint32_t>(linear.outputs);
    a.inner_bytes = static_cast<uint32_t>(linear.inner * element_size(linear.dtype));
    way.launch(a, way.layout, card(queue.device), queue.stream);
}

namespace {

// Of inputs that have passed the operator's checks.
LinearLayer layer_of(const Inputs& in) {
    const View &x = in.tensors[0], &weight = in.tensors[1], &bias = in.tensors[2];
    LinearLayer layer{dtype_of(x), x.data, weight.data,     bias.data,
                      nullptr,     1,      weight.sizes[0], x.last_size()};
    for (int64_t d = 0; d + 1 < x.dims; ++d) layer.rows *= x.sizes[d];
    return layer;
}

bool serves_inputs(const Inputs& in, int device) {
    for (const View& view : in.tensors)
        if (view.is_there() && !view.is_contiguous()) return false;
    return serves(layer_of(in), device);
}

void launch_inputs(const Inputs& in, const Plan&, void* const* results, const Queue& queue) {
    LinearLayer layer = layer_of(in);
    layer.y = results[0];
    launch_linear(layer, queue);
}

}  // namespace

KernelList linear_kernels() {
    static const Kernel all[] = {{"linear", launch_inputs, nullptr, serves_inputs}};
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack::cuda
