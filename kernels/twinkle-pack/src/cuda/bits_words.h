#pragma once
// Words of packed weights as pairs of 16-bit numbers, exactly: from four bytes always the first and
// the third, so that no instruction moves bytes. With the word shifted by 8 the second and fourth.

#include "cuda/platform.h"
#include "cuda/scalar.h"

#ifdef __CUDACC__

namespace twinkle_pack::cuda {
namespace {

template <class T>
struct PairOf {
    using type = __half2;
};
template <>
struct PairOf<BFloat16> {
    using type = __nv_bfloat162;
};

// f of two pairs.
template <class T, class F>
__device__ __forceinline__ uint32_t of_pairs(uint32_t a, uint32_t b, F f) {
    typename PairOf<T>::type first, second;
    __builtin_memcpy(&first, &a, sizeof a), __builtin_memcpy(&second, &b, sizeof b);
    first = f(first, second);
    __builtin_memcpy(&a, &first, sizeof a);
    return a;
}
template <class T>
__device__ __forceinline__ uint32_t subtract_pairs(uint32_t a, uint32_t b, T) {
    return of_pairs<T>(a, b, [](auto one, auto other) { return __hsub2(one, other); });
}
template <class T>
__device__ __forceinline__ uint32_t multiply_pairs(uint32_t a, uint32_t b, T) {
    return of_pairs<T>(a, b, [](auto one, auto other) { return __hmul2(one, other); });
}
// (word & mask) | bits, and ^: one instruction, where a compiler that sees constants makes two.
__device__ __forceinline__ uint32_t masked_or(uint32_t word, uint32_t mask, uint32_t bits) {
    uint32_t result;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(word), "r"(mask), "r"(bits));
    return result;
}
__device__ __forceinline__ uint32_t masked_xor(uint32_t word, uint32_t mask, uint32_t bits) {
    uint32_t result;
    asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(result) : "r"(word), "r"(mask), "r"(bits));
    return result;
}
// Bytes 0, 1, 4, 5 of the two words (`first`), or 2, 3, 6, 7.
__device__ __forceinline__ uint32_t halves(uint32_t low, uint32_t high, bool first) {
    return __byte_perm(low, high, first ? 0x5410 : 0x7632);
}
// Four bytes of eight, each chosen by four bits.
__device__ __forceinline__ uint32_t chosen_bytes(uint32_t low, uint32_t high, uint32_t choice) {
    return __byte_perm(low, high, choice);
}

}  // namespace
}  // namespace twinkle_pack::cuda

#else

namespace twinkle_pack::cuda {
namespace {

template <class T, class F>
uint32_t of_pairs(uint32_t a, uint32_t b, F f) {
    uint32_t result = 0;
    for (int shift = 0; shift < 32; shift += 16) {
        const float one = to_float(T{static_cast<uint16_t>(a >> shift)});
        const float other = to_float(T{static_cast<uint16_t>(b >> shift)});
        result |= static_cast<uint32_t>(from_float<T>(f(one, other)).bits) << shift;
    }
    return result;
}
template <class T>
uint32_t subtract_pairs(uint32_t a, uint32_t b, T) {
    return of_pairs<T>(a, b, [](float one, float other) { return one - other; });
}
template <class T>
uint32_t multiply_pairs(uint32_t a, uint32_t b, T) {
    return of_pairs<T>(a, b, [](float one, float other) { return one * other; });
}
inline uint32_t masked_or(uint32_t word, uint32_t mask, uint32_t bits) {
    return (word & mask) | bits;
}
inline uint32_t masked_xor(uint32_t word, uint32_t mask, uint32_t bits) {
    return (word & mask) ^ bits;
}
inline uint32_t halves(uint32_t low, uint32_t high, bool first) {
    return first ? (low & 0xffffu) | high << 16 : low >> 16 | (high & 0xffff0000u);
}
inline uint32_t chosen_bytes(uint32_t low, uint32_t high, uint32_t choice) {
    const uint64_t both = uint64_t{high} << 32 | low;
    uint32_t result = 0;
    for (unsigned i = 0; i < 4; ++i)
        result |= static_cast<uint32_t>(both >> (choice >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    return result;
}

}  // namespace
}  // namespace twinkle_pack::cuda

#endif

namespace twinkle_pack::cuda {
namespace {

// In which x is multiplied: float32 as the sum of two.
template <class T>
using Factor = std::conditional_t<std::is_same_v<T, float>, BFloat16, T>;

// Bytes 0 and 2, less 128. With ulp 1 an integer is a number's last bits; bfloat16 has 7 of them,
// so that the eighth chooses what is subtracted.
__device__ __forceinline__ uint32_t bytes_less_128(uint32_t word, BFloat16 type) {
    return subtract_pairs(
        masked_or(word, 0x007f007fu, 0x43004300u),   // 128 and seven bits
        masked_xor(word, 0x00800080u, 0x43804380u),  // 128 with the eighth, 256 without
        type);
}
__device__ __forceinline__ uint32_t bytes_less_128(uint32_t word, Float16 type) {
    return subtract_pairs(masked_or(word, 0x00ff00ffu, 0x64006400u), 0x64806480u,
                          type);  // 1024, 1152
}

// The lower halves of bytes 0 and 2, less 8.
__device__ __forceinline__ uint32_t nibbles_less_8(uint32_t word, BFloat16 type) {
    return subtract_pairs(masked_or(word, 0x000f000fu, 0x43004300u), 0x43084308u,
                          type);  // 128, 136
}
// The same, plus 136.
__device__ __forceinline__ uint32_t nibbles_plus_128(uint32_t word) {
    return masked_or(word, 0x000f000fu, 0x43004300u);
}
__device__ __forceinline__ uint32_t nibbles_less_8(uint32_t word, Float16 type) {
    return subtract_pairs(masked_or(word, 0x000f000fu, 0x64006400u), 0x64086408u,
                          type);  // 1024, 1032
}

// Bytes 1 and 3 as the numbers of fp8.h: their exponent where the wider type has its own, whose
// other bias a product makes good, of denormals, too.
__device__ __forceinline__ uint32_t fp8_of_bytes(uint32_t word, BFloat16 type) {
    return multiply_pairs(((word & 0x7f007f00u) >> 4) | (word & 0x80008000u), 0x7b807b80u,  // 2^120
                          type);
}
__device__ __forceinline__ uint32_t fp8_of_bytes(uint32_t word, Float16 type) {
    return multiply_pairs(((word & 0x7f007f00u) >> 1) | (word & 0x80008000u), 0x5c005c00u,  // 2^8
                          type);
}

}  // namespace
}  // namespace twinkle_pack::cuda
