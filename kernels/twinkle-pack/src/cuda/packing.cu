// Packed weights made numbers again, and rows of x rounded to 8 bits: what a product of many rows
// by LibTorch takes.
#include "cuda/bits_words.h"
#include "cuda/families.h"
#include "cuda/pack.h"
#include "cuda/rows.h"
#include "fp8.h"

namespace twinkle_pack::cuda {
namespace {

constexpr unsigned block_outputs = 16, group_terms = 64, block_threads = 256;

struct PackedWeight {
    const char* values;
    const float* scales;
    void* y;
    uint64_t outputs, groups;
};

template <class T>
__device__ __forceinline__ void store_eight(T* to, const float (&eight)[8]) {
    store(to, packed<T>(eight));
}

// A warp has a group of a block: four outputs at a time, whose lines it writes whole, a lane eight
// terms of one.
template <class T, unsigned bits>
__global__ void unpack_blocks(PackedWeight a) {
    const uint64_t at = uint64_t{blockIdx.x} * (block_threads / 32) + threadIdx.x / 32;
    const uint64_t block = at / a.groups, group = at % a.groups, first = block * block_outputs;
    if (first >= a.outputs) return;
    // The last block may be narrower.
    const uint64_t left = a.outputs - first, width = left < block_outputs ? left : block_outputs;
    constexpr unsigned bytes = group_terms * bits / 8;
    const char* const from = a.values + first * a.groups * bytes + group * width * bytes;
    const float* const scales = a.scales + first * a.groups + group * width;
    const unsigned term = threadIdx.x % 8 * 8;
    const unsigned byte = term % bytes, shift = term / bytes * bits;
    for (uint64_t output = threadIdx.x % 32 / 8; output < width; output += 4) {
        float eight[8];
#pragma unroll
        for (unsigned i = 0; i < 8; ++i) {
            const uint32_t word =
                *reinterpret_cast<const uint32_t*>(from + ((byte + i) / 4 * width + output) * 4);
            const uint32_t value = word >> (i % 4 * 8 + shift) & ((1u << bits) - 1);
            eight[i] = static_cast<float>(static_cast<int32_t>(value) - (1 << (bits - 1))) *
                       scales[output];
        }
        store_eight(
            static_cast<T*>(a.y) + ((first + output) * a.groups + group) * group_terms + term,
            eight);
    }
}

template <class T>
__global__ void unpack_fp8(PackedWeight a) {
    const uint64_t at = (uint64_t{blockIdx.x} * block_threads + threadIdx.x) * 8;
    const uint64_t depth = a.groups * group_terms;
    if (at >= a.outputs * depth) return;
    const float scale = a.scales[at / depth];
    const uint8_t* const from = reinterpret_cast<const uint8_t*>(a.values) + at;
    float eight[8];
    for (unsigned i = 0; i < 8; ++i) eight[i] = fp8_to_float(from[i]) * scale;
    store_eight(static_cast<T*>(a.y) + at, eight);
}

template <class Kernel>
void start(const Queue& queue, Kernel kernel, uint64_t items, const PackedWeight& weight) {
    launch(queue.stream, kernel, {quotient_up(items, block_threads)}, block_threads, weight);
}

PackedWeight weight_of(const Inputs& in, void* result) {
    const View &values = in.tensors[1], &scales = in.tensors[2];
    return {static_cast<const char*>(values.data), static_cast<const float*>(scales.data), result,
            static_cast<uint64_t>(values.sizes[0]),
            static_cast<uint64_t>(in.tensors[0].last_size()) / group_terms};
}

template <unsigned bits>
void launch_blocks(const Inputs& in, const Plan&, void* const* results, const Queue& queue) {
    const PackedWeight weight = weight_of(in, results[0]);
    const uint64_t blocks = quotient_up(weight.outputs, block_outputs);
    if (blocks * weight.groups == 0) return;
    switch (dtype_of(in.tensors[0])) {
        case DType::float32:
            return start(queue, unpack_blocks<float, bits>, blocks * weight.groups * 32, weight);
        case DType::bfloat16:
            return start(queue, unpack_blocks<BFloat16, bits>, blocks * weight.groups * 32, weight);
        default:
            return start(queue, unpack_blocks<Float16, bits>, blocks * weight.groups * 32, weight);
    }
}

void launch_fp8(const Inputs& in, const Plan&, void* const* results, const Queue& queue) {
    const PackedWeight weight = weight_of(in, results[0]);
    const uint64_t vectors = weight.outputs * weight.groups * (group_terms / 8);
    if (vectors == 0) return;
    switch (dtype_of(in.tensors[0])) {
        case DType::float32: return start(queue, unpack_fp8<float>, vectors, weight);
        case DType::bfloat16: return start(queue, unpack_fp8<BFloat16>, vectors, weight);
        default: return start(queue, unpack_fp8<Float16>, vectors, weight);
    }
}

// --- rows of x ----------------------------------------------------------------------------------

struct Rows {
    const void* x;
    uint8_t* values;
    float* scales;
    uint32_t vectors;  // of eight, in a row
};

__device__ __forceinline__ float larger_magnitude(float largest, float x) {
    const float magnitude = x < 0 ? -x : x;
    return magnitude > largest ? magnitude : largest;  // not NaN, which stays one when rounded
}

template <class T>
__global__ void round_rows(Rows a) {
    constexpr unsigned warps = block_threads / 32;
    __shared__ float of_warps[warps];
    const T* const x = static_cast<const T*>(a.x) + uint64_t{blockIdx.x} * a.vectors * 8;
    float largest = 0;
    for (uint32_t v = threadIdx.x; v < a.vectors; v += block_threads) {
        const auto eight = load<T, 8>(x + uint64_t{v} * 8);
#pragma unroll
        for (int i = 0; i < 8; ++i) largest = larger_magnitude(largest, number_at(eight, i));
    }
#pragma unroll
    for (unsigned mask = 16; mask > 0; mask /= 2)
        largest = larger_magnitude(largest, shuffle_xor(largest, mask));
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = largest;
    __syncthreads();
    for (unsigned i = 0; i < warps; ++i) largest = larger_magnitude(largest, of_warps[i]);
    const bool nothing = !(largest > 1e-30f);  // its inverse would not be finite
    const float inverse = nothing ? 0 : fp8_largest / largest;
    if (threadIdx.x == 0) a.scales[blockIdx.x] = nothing ? 0 : largest / fp8_largest;
    uint8_t* const values = a.values + uint64_t{blockIdx.x} * a.vectors * 8;
    for (uint32_t v = threadIdx.x; v < a.vectors; v += block_threads) {
        const auto eight = load<T, 8>(x + uint64_t{v} * 8);
        Pack<uint8_t, 8> rounded;
#pragma unroll
        for (int i = 0; i < 8; ++i) rounded.at[i] = fp8_from_float(number_at(eight, i) * inverse);
        uint2 words;
        __builtin_memcpy(&words, &rounded, sizeof words);
        *reinterpret_cast<uint2*>(values + uint64_t{v} * 8) = words;
    }
}

void launch_round(const Inputs& in, const Plan&, void* const* results, const Queue& queue) {
    const View& x = in.tensors[0];
    if (x.elements() == 0) return;
    const Rows rows{x.data, static_cast<uint8_t*>(results[0]), static_cast<float*>(results[1]),
                    static_cast<uint32_t>(x.last_size() / 8)};
    const Grid grid{static_cast<uint64_t>(x.sizes[0])};
    switch (dtype_of(x)) {
        case DType::float32:
            return launch(queue.stream, round_rows<float>, grid, block_threads, rows);
        case DType::bfloat16:
            return launch(queue.stream, round_rows<BFloat16>, grid, block_threads, rows);
        default: return launch(queue.stream, round_rows<Float16>, grid, block_threads, rows);
    }
}

}  // namespace

KernelList packing_kernels() {
    static constexpr Kernel all[] = {{"unpack_int8", launch_blocks<8>},
                                     {"unpack_int4", launch_blocks<4>},
                                     {"unpack_fp8", launch_fp8},
                                     {"round_to_fp8", launch_round}};
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack::cuda
