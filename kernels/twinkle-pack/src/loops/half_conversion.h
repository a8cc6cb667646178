// Converts half precisions from and to float with integer operations: for any CPU.

inline float to_float(float value) {
    return value;
}
inline float to_float(BFloat16 value) {
    return __builtin_bit_cast(float, static_cast<uint32_t>(value.bits) << 16);
}
inline float to_float(Float16 value) {
    const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
    const uint32_t rest = value.bits & 0x7fffu;
    if (rest >= 0x7c00u)  // infinity, NaN
        return __builtin_bit_cast(float, sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    // Scaling by 2^112 adjusts the exponent's bias and makes denormals normal.
    const float magnitude = __builtin_bit_cast(float, rest << 13) * 0x1p112f;
    return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, magnitude) | sign);
}

template <class T>
T from_float(float value);
template <>
inline float from_float<float>(float value) {
    return value;
}
template <>
inline BFloat16 from_float<BFloat16>(float value) {
    if (value != value) return {0x7fc0};
    const uint32_t bits = __builtin_bit_cast(uint32_t, value);
    return {static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}
template <>
inline Float16 from_float<Float16>(float value) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, value);
    const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
    const uint32_t rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u) return {static_cast<uint16_t>(sign | 0x7e00u)};
    if (rest >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00u)};  // rounds to infinity
    if (rest < 0x38800000u) {  // a denormal: adding 0.5 rounds at the right bit
        const float shifted = __builtin_bit_cast(float, rest) + 0.5f;
        return {
            static_cast<uint16_t>(sign | (__builtin_bit_cast(uint32_t, shifted) - 0x3f000000u))};
    }
    return {static_cast<uint16_t>(sign | (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13)};
}
