// Vectors of GCC's and Clang's extension, for any instruction set: included like the loops, after
// them.

// V of loops/common.h: a vector of so many bytes of float or double. `brief`: doubles that become
// floats in the end, for which a shorter series and a smaller range of exp suffice.
template <class Scalar, class Integer, int bytes, bool brief = false>
struct VectorExtension {
    using scalar = Scalar;
    static constexpr int64_t width = bytes / sizeof(Scalar);
    static constexpr bool precise = sizeof(Scalar) == 8 && !brief;
    typedef Scalar reg __attribute__((vector_size(bytes)));
    typedef Integer ints __attribute__((vector_size(bytes)));
    typedef float floats __attribute__((vector_size(width * sizeof(float))));
    typedef double doubles __attribute__((vector_size(width * sizeof(double))));

    static reg set1(Scalar value) { return reg{} + value; }
    static reg add(reg a, reg b) { return a + b; }
    static reg mul(reg a, reg b) { return a * b; }
    static reg div(reg a, reg b) { return a / b; }
    static reg fma(reg a, reg b, reg c) { return a * b + c; }
    struct Scale {
        reg high;
        explicit Scale(double value) : high(set1(static_cast<Scalar>(value))) {}
    };
    static reg product(reg x, Scale scale, reg weight) { return x * scale.high * weight; }
    static reg normalized(reg x, Scale minus_mean, Scale scale, reg weight, reg bias) {
        return (x + minus_mean.high) * scale.high * weight + bias;
    }
    static double sum(reg a) {
        double total = 0;
        for (int i = 0; i < width; ++i) total += a[i];
        return total;
    }

    template <class T>
    static reg load(const T* from) {
        if constexpr (__is_same(T, float)) {
            floats values;
            __builtin_memcpy(&values, from, sizeof values);
            return __builtin_convertvector(values, reg);
        }
        reg value{};
        T lanes[width];
        __builtin_memcpy(lanes, from, sizeof lanes);
        for (int i = 0; i < width; ++i) {
            if constexpr (__is_same(T, double))
                value[i] = lanes[i];
            else
                value[i] = to_float(lanes[i]);
        }
        return value;
    }

    template <class T>
    static void store(T* to, reg value) {
        if constexpr (__is_same(T, float)) {
            const floats values = __builtin_convertvector(value, floats);
            __builtin_memcpy(to, &values, sizeof values);
            return;
        }
        T lanes[width];
        for (int i = 0; i < width; ++i) {
            if constexpr (__is_same(T, double))
                lanes[i] = value[i];
            else
                lanes[i] = from_float<T>(static_cast<float>(value[i]));
        }
        __builtin_memcpy(to, lanes, sizeof lanes);
    }

    static void accumulate(double* sums, reg value) {
        doubles before;
        __builtin_memcpy(&before, sums, sizeof before);
        before += __builtin_convertvector(value, doubles);
        __builtin_memcpy(sums, &before, sizeof before);
    }

    static reg quotient(reg a, reg b) { return a / b; }
    static reg clamp(reg a, Scalar least, Scalar most) {
        a = a > most ? set1(most) : a;
        return a < least ? set1(least) : a;
    }
    static reg relu(reg a) { return a <= 0 ? set1(0) : a; }
    static reg if_negative(reg x, reg a, reg b) { return x < 0 ? a : b; }
    static reg if_positive(reg x, reg a) { return x <= 0 ? set1(0) : a; }
    static reg swap_pairs(reg a) {
        reg swapped;
        for (int i = 0; i < width; ++i) swapped[i] = a[i ^ 1];
        return swapped;
    }
    static reg pair_signs() {
        reg signs;
        for (int i = 0; i < width; ++i) signs[i] = i % 2 == 0 ? -1 : 1;
        return signs;
    }
    // Phi(x), by the C library.
    static reg normal_distribution(reg x) {
        for (int i = 0; i < width; ++i)
            x[i] = static_cast<Scalar>(0.5 * __builtin_erfc(-0.70710678118654752440 * x[i]));
        return x;
    }

    // There is no portable store that bypasses the cache.
    static void fence() {}
    static void stream(Scalar* to, reg value) { store(to, value); }

    template <class T>
    static reg rounded(reg value) {
        if constexpr (__is_same(T, Scalar)) return value;
        T lanes[width];
        store(lanes, value);
        return load(lanes);
    }

    static reg power_of_two(ints k) {
        constexpr int mantissa = sizeof(Scalar) == 4 ? 23 : 52;
        constexpr int bias = sizeof(Scalar) == 4 ? 127 : 1023;
        return (reg)((k + bias) << mantissa);
    }

    // Rounds to the nearest integer by adding and subtracting 1.5 * 2^mantissa bits.
    static reg exp(reg x) {
        constexpr bool narrow = sizeof(Scalar) == 4;
        constexpr Scalar limit = narrow ? 104 : brief ? 700 : 746;
        constexpr Scalar shift = narrow ? Scalar(0x1.8p23) : Scalar(0x1.8p52);
        x = clamp(x, -limit, limit);
        const reg shifted = x * set1(Scalar(1.44269504088896340736)) + shift;
        const reg k = shifted - shift;
        const ints whole = (ints)shifted - (ints)set1(shift);
        reg p;
        if constexpr (narrow) {
            p = exp_of_remainder<VectorExtension>(x - k * 0.693359375f + k * 2.12194440e-4f);
        } else if constexpr (brief) {
            const reg r = x - k * 6.93147180559945309417e-1;
            p = polynomial<VectorExtension>(r, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
                                            1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0);
            return p * power_of_two(whole);
        } else {
            const reg r = x - k * 6.93145751953125e-1 - k * 1.42860682030941723212e-6;
            p = polynomial<VectorExtension>(r, 1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800,
                                            1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
                                            1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0);
        }
        // 2^k in two factors: k may lie outside the exponents of the type.
        const ints half = whole >> 1;
        return p * power_of_two(half) * power_of_two(whole - half);
    }
};
