// Activations rounded to 8 bits, in groups of 64 with a scale each.

// The same integers in every instruction set: products and roundings (to nearest, ties to even) are
// those of single floats.
template <class V, class T>
void round_row(const void* from, int64_t groups, int8_t* values, ActivationGroup* to) {
    const T* x = static_cast<const T*>(from);
    for (int64_t g = 0; g < groups; ++g, x += bits_group, values += bits_group) {
        float group[bits_group];
        for (int64_t i = 0; i < bits_group; i += V::width) V::store(group + i, V::load(x + i));
        // Magnitudes order like their bits, NaN last.
        uint32_t largest_bits = 0;
        for (const float value : group) {
            uint32_t bits;
            __builtin_memcpy(&bits, &value, sizeof bits);
            bits &= 0x7fffffffu;
            largest_bits = bits > largest_bits ? bits : largest_bits;
        }
        float largest;
        __builtin_memcpy(&largest, &largest_bits, sizeof largest);
        const bool finite = largest_bits < 0x7f800000u;
        const bool nothing = !(largest > 1e-30f);  // its inverse would not be finite
        if (!finite || nothing) {
            for (int64_t i = 0; i < bits_group; ++i) values[i] = 0;
            to[g] = {finite ? 0.0f : __builtin_nanf(""), 0};
            continue;
        }
        const float inverse = 127.0f / largest;
        int32_t sum = 0;
        for (int64_t i = 0; i < bits_group; ++i) {
            // Adding 1.5 * 2^23 rounds to an integer, which the lower bits are.
            const float shifted = group[i] * inverse + 12582912.0f;
            int32_t bits;
            __builtin_memcpy(&bits, &shifted, sizeof bits);
            values[i] = static_cast<int8_t>(bits - 0x4b400000);
            sum += values[i];
        }
        to[g] = {largest / 127.0f, sum};
    }
}
