#pragma once
// Several elements that are loaded and stored at once.

#include "cuda/reading.h"
#include "cuda/scalar.h"

namespace twinkle_pack::cuda {
namespace {

constexpr int vector_bytes = 16;  // of the widest load

inline bool at_vectors(const void* address) {
    return reinterpret_cast<uintptr_t>(address) % vector_bytes == 0;
}

template <class T, int n>
struct alignas(n * sizeof(T) < 16 ? n * sizeof(T) : 16) Pack {
    T at[n];
};

// A pack as loaded; only unpacked() takes it apart. Unpacking right after a load, in a branch,
// would wait there, before the next load is issued.
template <class T, int n, int bytes = n * static_cast<int>(sizeof(T))>
struct Loaded {
    T at[n];
};
template <class T, int n, int bytes>
    requires(bytes % 16 == 0)
struct Loaded<T, n, bytes> {
    uint4 words[bytes / 16];
};
template <class T, int n>
struct Loaded<T, n, 4> {
    uint32_t word;
};

template <class T, int n, Reading reading = Reading::cached>
__device__ __forceinline__ Loaded<T, n> load_packed(const void* from) {
    Loaded<T, n> loaded;
    if constexpr (sizeof(loaded) % 16 == 0) {
        const uint4* words = static_cast<const uint4*>(from);
#pragma unroll
        for (int i = 0; i < static_cast<int>(sizeof(loaded) / 16); ++i)
            loaded.words[i] =
                reading == Reading::once ? load_once(words + i) : load_cached(words + i);
    } else if constexpr (sizeof(loaded) == 4) {
        loaded.word = *static_cast<const uint32_t*>(from);
    } else {
#pragma unroll
        for (int i = 0; i < n; ++i) loaded.at[i] = static_cast<const T*>(from)[i];
    }
    return loaded;
}

template <class T, int n>
__device__ __forceinline__ Pack<T, n> unpacked(const Loaded<T, n>& loaded) {
    Pack<T, n> pack;
    static_assert(sizeof pack == sizeof loaded);
    __builtin_memcpy(&pack, &loaded, sizeof pack);
    return pack;
}

template <class T, int n, Reading reading = Reading::cached>
__device__ __forceinline__ Pack<T, n> load(const void* from) {
    return unpacked<T, n>(load_packed<T, n, reading>(from));
}

template <class T, int n>
__device__ __forceinline__ void store(void* to, const Pack<T, n>& pack) {
    if constexpr (sizeof(pack) % 16 == 0) {
        constexpr int count = sizeof(pack) / 16;
        uint4 words[count];
        __builtin_memcpy(words, &pack, sizeof words);
#pragma unroll
        for (int i = 0; i < count; ++i) store_wide(static_cast<uint4*>(to) + i, words[i]);
    } else if constexpr (sizeof(pack) == 4) {
        uint32_t word;
        __builtin_memcpy(&word, &pack, 4);
        *static_cast<uint32_t*>(to) = word;
    } else {
#pragma unroll
        for (int i = 0; i < n; ++i) static_cast<T*>(to)[i] = pack.at[i];
    }
}

__device__ __forceinline__ double to_number(double value) {
    return value;
}
template <class T>
__device__ __forceinline__ float to_number(T value) {
    return to_float(value);
}

// An element of a pack. Two bfloat16 share a word, and each needs one instruction.
template <class T, int n>
__device__ __forceinline__ auto number_at(const Pack<T, n>& pack, int i) {
    if constexpr (std::is_same_v<T, BFloat16> && n % 2 == 0) {
        uint32_t word;
        __builtin_memcpy(&word, pack.at + i / 2 * 2, sizeof word);
        word = i % 2 == 0 ? word << 16 : word & 0xffff0000u;
        float number;
        __builtin_memcpy(&number, &word, sizeof number);
        return number;
    } else {
        return to_number(pack.at[i]);
    }
}

template <class T, class Number>
__device__ __forceinline__ T rounded(Number value) {
    if constexpr (sizeof(T) == 8) {
        return value;
    } else {
        T both[2];
        from_floats(static_cast<float>(value), 0, both);
        return both[0];
    }
}

template <class T, class Number, int n>
__device__ __forceinline__ Pack<T, n> packed(const Number (&values)[n]) {
    Pack<T, n> pack;
    if constexpr (sizeof(T) == 8 || n % 2 != 0) {
#pragma unroll
        for (int i = 0; i < n; ++i) pack.at[i] = rounded<T>(values[i]);
    } else {
#pragma unroll
        for (int i = 0; i < n; i += 2)
            from_floats(static_cast<float>(values[i]), static_cast<float>(values[i + 1]),
                        pack.at + i);
    }
    return pack;
}

template <class T, int n>
__device__ __forceinline__ Pack<T, n> all_of(float value) {
    Pack<T, n> pack;
#pragma unroll
    for (int i = 0; i < n; ++i) pack.at[i] = rounded<T>(value);
    return pack;
}

__device__ __forceinline__ unsigned bytes_of(DType dtype) {
    return dtype == DType::float64 ? 8 : dtype == DType::float32 ? 4 : 2;
}

// An element of any dtype.
template <class Number>
__device__ __forceinline__ Number load_as(DType dtype, const void* from) {
    switch (dtype) {
        case DType::float32: return *static_cast<const float*>(from);
        case DType::bfloat16: return to_float(*static_cast<const BFloat16*>(from));
        case DType::float16: return to_float(*static_cast<const Float16*>(from));
        default: return static_cast<Number>(*static_cast<const double*>(from));
    }
}
template <class Number>
__device__ __forceinline__ void store_as(DType dtype, void* to, Number value) {
    switch (dtype) {
        case DType::float32: *static_cast<float*>(to) = static_cast<float>(value); break;
        case DType::bfloat16: *static_cast<BFloat16*>(to) = rounded<BFloat16>(value); break;
        case DType::float16: *static_cast<Float16*>(to) = rounded<Float16>(value); break;
        default: *static_cast<double*>(to) = value;
    }
}
template <class Number>
__device__ __forceinline__ Number rounded_to(DType dtype, Number value) {
    switch (dtype) {
        case DType::float32: return static_cast<float>(value);
        case DType::bfloat16: return to_float(rounded<BFloat16>(value));
        case DType::float16: return to_float(rounded<Float16>(value));
        default: return value;
    }
}

// Keeps half precision packed between passes, instead of as converted numbers.
template <class X, int held, int n>
__device__ __forceinline__ void keep_packed(Pack<X, n> (&x)[held]) {
    if constexpr (sizeof(X) == 2) {
        using Word __attribute__((may_alias)) = uint32_t;  // of elements of another type
#pragma unroll
        for (int j = 0; j < held; ++j)
#pragma unroll
            for (int i = 0; i < n / 2; ++i) forget(reinterpret_cast<Word*>(&x[j])[i]);
    }
}

}  // namespace
}  // namespace twinkle_pack::cuda
