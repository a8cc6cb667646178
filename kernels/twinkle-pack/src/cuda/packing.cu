// Packed weights made numbers again, and rows of x rounded to 8 bits: what a product of many rows
// by LibTorch takes.
#include "cuda/families.h"
#include "cuda/four.h"
#include "cuda/launching.h"
#include "cuda/pack.h"
#include "cuda/rounding.h"
#include "cuda/rows.h"
#include "fp8.h"

namespace twinkle_pack::cuda {
namespace {

constexpr unsigned block_outputs = 16, group_terms = 64, block_threads = 256;
constexpr unsigned block_groups = block_threads / 32;  // a warp has one

struct PackedWeight {
    const char* values;
    const float* scales;
    void* y;
    uint64_t outputs, groups;
    bool aligned;
};

template <class T>
__device__ __forceinline__ void store_eight(T* to, const float (&eight)[8]) {
    store(to, packed<T>(eight));
}

// A group of a block.
template <unsigned bits>
struct PackedGroup {
    uint64_t first_output, group;
    unsigned outputs;  // of the block: the last one may be narrower
    const char* values;
    const float* scales;

    static constexpr unsigned bytes = group_terms * bits / 8;  // of an output

    __device__ __forceinline__ PackedGroup(const PackedWeight& a, uint64_t block, uint64_t at)
        : first_output(block * block_outputs), group(at) {
        const uint64_t left = a.outputs - first_output;
        outputs = static_cast<unsigned>(left < block_outputs ? left : block_outputs);
        values = a.values + first_output * a.groups * bytes + group * outputs * bytes;
        scales = a.scales + first_output * a.groups + group * outputs;
    }

    static __device__ __forceinline__ float number(uint32_t word, unsigned i, float scale) {
        const uint32_t value = word >> (i * bits) & ((1u << bits) - 1);
        return static_cast<float>(static_cast<int32_t>(value) - (1 << (bits - 1))) * scale;
    }
    template <class T>
    __device__ __forceinline__ T* place(const PackedWeight& a, unsigned output,
                                        uint64_t term) const {
        return static_cast<T*>(a.y) + (first_output + output) * a.groups * group_terms + term;
    }
};

// By a block, eight groups that follow one another, so that what it writes of each output lies
// together: in pieces of 128 bytes it takes twice as long. A lane reads four terms of four outputs
// at a time, and of int4 those that are 32 further.
template <class T, unsigned bits>
__device__ __forceinline__ void unpack_whole(const PackedWeight& a,
                                             const PackedGroup<bits>& packed_group,
                                             uint64_t first_group) {
    constexpr unsigned loads = PackedGroup<bits>::bytes / 32, halves = 8 / bits;
    constexpr unsigned pitch = block_groups * group_terms + 8;  // neighbours in different banks
    alignas(16) __shared__ Pack<T, 4> terms[block_outputs * pitch / 4];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = lane % 4 * 4;
    if (packed_group.group < a.groups) {
        uint4 words[loads];
#pragma unroll
        for (unsigned i = 0; i < loads; ++i)
            words[i] =
                load_once(reinterpret_cast<const uint4*>(packed_group.values) + i * 32 + lane);
#pragma unroll
        for (unsigned j = 0; j < 4; ++j) {
            const float scale = packed_group.scales[first + j];
#pragma unroll
            for (unsigned i = 0; i < loads * halves; ++i) {
                // The bytes of a word are terms that follow one another.
                uint32_t word = word_of(words[i / halves], j);
                if (bits == 4) word >>= i % 2 * 4;
                float four[4];
#pragma unroll
                for (unsigned k = 0; k < 4; ++k)
                    four[k] = PackedGroup<bits>::number(word, k * 8 / bits, scale);
                const unsigned term = warp * group_terms + i * 32 + lane / 4 * 4;
                terms[((first + j) * pitch + term) / 4] = packed<T>(four);
            }
        }
    }
    __syncthreads();
    const uint64_t left = a.groups - first_group;
    constexpr unsigned at_once = vector_bytes / sizeof(T);
    const unsigned count =
        static_cast<unsigned>(left < block_groups ? left : block_groups) * group_terms / at_once;
    for (unsigned output = warp; output < block_outputs; output += block_threads / 32)
        for (unsigned i = lane; i < count; i += 32) {
            const void* const from = &terms[(output * pitch + i * at_once) / 4];
            void* const to =
                packed_group.template place<T>(a, output, first_group * group_terms + i * at_once);
            store_wide(static_cast<uint4*>(to), *static_cast<const uint4*>(from));
        }
}

// Of a narrow block, or from an address that 16 does not divide: four outputs at a time, a lane
// eight terms of one.
template <class T, unsigned bits>
__device__ __forceinline__ void unpack_narrow(const PackedWeight& a,
                                              const PackedGroup<bits>& packed_group) {
    const unsigned term = threadIdx.x % 8 * 8, width = packed_group.outputs;
    const unsigned first = term % PackedGroup<bits>::bytes, half = term / PackedGroup<bits>::bytes;
    for (unsigned output = threadIdx.x % 32 / 8; output < width; output += 4) {
        float eight[8];
#pragma unroll
        for (unsigned i = 0; i < 8; ++i) {
            const unsigned byte = first + i;
            const char value = packed_group.values[(byte / 4 * width + output) * 4 + byte % 4];
            eight[i] = PackedGroup<bits>::number(static_cast<uint8_t>(value) >> half * 4, 0,
                                                 packed_group.scales[output]);
        }
        store_eight(
            packed_group.template place<T>(a, output, packed_group.group * group_terms + term),
            eight);
    }
}

template <class T, unsigned bits>
__global__ void unpack_blocks(PackedWeight a) {
    const uint64_t parts = quotient_up(a.groups, block_groups);
    const uint64_t first = blockIdx.x % parts * block_groups;
    const PackedGroup<bits> packed_group(a, blockIdx.x / parts, first + threadIdx.x / 32);
    if (packed_group.outputs == block_outputs && a.aligned)
        unpack_whole<T, bits>(a, packed_group, first);
    else if (packed_group.group < a.groups)
        unpack_narrow<T, bits>(a, packed_group);
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
    return {static_cast<const char*>(values.data),
            static_cast<const float*>(scales.data),
            result,
            static_cast<uint64_t>(values.sizes[0]),
            static_cast<uint64_t>(in.tensors[0].last_size()) / group_terms,
            at_vectors(values.data)};
}

template <unsigned bits>
void launch_blocks(const Inputs& in, const Plan&, void* const* results, const Queue& queue) {
    const PackedWeight weight = weight_of(in, results[0]);
    const uint64_t threads = quotient_up(weight.outputs, block_outputs) *
                             quotient_up(weight.groups, block_groups) * block_threads;
    if (threads == 0) return;
    switch (dtype_of(in.tensors[0])) {
        case DType::float32: return start(queue, unpack_blocks<float, bits>, threads, weight);
        case DType::bfloat16: return start(queue, unpack_blocks<BFloat16, bits>, threads, weight);
        default: return start(queue, unpack_blocks<Float16, bits>, threads, weight);
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
    bool aligned;
};

__device__ __forceinline__ float larger_magnitude(float largest, float x) {
    const float magnitude = x < 0 ? -x : x;
    return magnitude > largest ? magnitude : largest;  // not NaN, which stays one when rounded
}

template <class T>
__device__ __forceinline__ Pack<T, 8> eight_at(const T* from, bool aligned) {
    if (aligned) return load<T, 8>(from);
    Pack<T, 8> eight;
#pragma unroll
    for (int i = 0; i < 8; ++i) eight.at[i] = from[i];
    return eight;
}

template <class T>
__global__ void __launch_bounds__(block_threads) round_rows(Rows a) {
    constexpr unsigned warps = block_threads / 32;
    __shared__ float of_warps[warps];
    wait_for_earlier();
    let_next_begin();
    const T* const x = static_cast<const T*>(a.x) + uint64_t{blockIdx.x} * a.vectors * 8;
    float largest = 0;
    for (uint32_t v = threadIdx.x; v < a.vectors; v += block_threads) {
        const auto eight = eight_at(x + uint64_t{v} * 8, a.aligned);
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
        const auto eight = eight_at(x + uint64_t{v} * 8, a.aligned);
        Pack<uint16_t, 4> rounded;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            rounded.at[i] = fp8_from_floats(number_at(eight, 2 * i) * inverse,
                                            number_at(eight, 2 * i + 1) * inverse);
        uint2 words;
        __builtin_memcpy(&words, &rounded, sizeof words);
        *reinterpret_cast<uint2*>(values + uint64_t{v} * 8) = words;
    }
}

void launch_round(const Inputs& in, const Plan&, void* const* results, const Queue& queue) {
    const View& x = in.tensors[0];
    if (x.elements() == 0) return;
    launch_rounding({dtype_of(x), x.data, results[0], static_cast<float*>(results[1]), x.sizes[0],
                     x.last_size()},
                    queue);
}

}  // namespace

void launch_rounding(const RoundedRows& rows, const Queue& queue) {
    const Rows a{rows.x, static_cast<uint8_t*>(rows.values), rows.scales,
                 static_cast<uint32_t>(rows.depth / 8), at_vectors(rows.x)};
    const auto start = [&](auto* kernel) {
        launch_early(queue.stream, card(queue.device), kernel, {static_cast<uint64_t>(rows.rows)},
                     block_threads, 1, a);
    };
    switch (rows.dtype) {
        case DType::float32: return start(round_rows<float>);
        case DType::bfloat16: return start(round_rows<BFloat16>);
        default: return start(round_rows<Float16>);
    }
}

KernelList packing_kernels() {
    static constexpr Kernel all[] = {{"unpack_int8", launch_blocks<8>},
                                     {"unpack_int4", launch_blocks<4>},
                                     {"unpack_fp8", launch_fp8},
                                     {"round_to_fp8", launch_round}};
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack::cuda
