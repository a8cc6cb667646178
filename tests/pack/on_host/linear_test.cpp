// The CUDA kernels of linear layers, on the CPU: against sums in double.
#include "cuda/linear.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "catch.h"
#include "elements.h"
#include "on_host.h"

using namespace twinkle_pack;
using namespace twinkle_pack::cuda;

namespace {

template <class T>
struct Layer {
    size_t rows, outputs, inner;
    Elements<T> x{rows * inner}, weight{outputs * inner}, bias{outputs}, y{rows * outputs + 1};

    Layer(size_t of_rows, size_t of_outputs, size_t of_inner)
        : rows(of_rows), outputs(of_outputs), inner(of_inner) {
        std::mt19937 random(static_cast<unsigned>(rows * 7 + outputs * 3 + inner));
        std::normal_distribution<float> normal;
        for (size_t i = 0; i < rows * inner; ++i) x[i] = from_float<T>(normal(random));
        for (size_t i = 0; i < outputs * inner; ++i) weight[i] = from_float<T>(normal(random));
        for (size_t i = 0; i < outputs; ++i) bias[i] = from_float<T>(normal(random));
        for (size_t i = 0; i <= rows * outputs; ++i) y[i] = from_float<T>(12345);
    }

    LinearLayer linear(bool with_bias = true) {
        return {dtype<T>,
                x.data(),
                weight.data(),
                with_bias ? bias.data() : nullptr,
                y.data(),
                static_cast<int64_t>(rows),
                static_cast<int64_t>(outputs),
                static_cast<int64_t>(inner)};
    }
    void run(bool with_bias = true) { launch_linear(linear(with_bias), {nullptr, 0, nullptr, {}}); }

    // The largest error, of the size that results have; each must be written.
    double error(bool with_bias = true) {
        double most = 0;
        for (size_t row = 0; row < rows; ++row)
            for (size_t output = 0; output < outputs; ++output) {
                double sum = with_bias ? to_float(bias[output]) : 0;
                for (size_t k = 0; k < inner; ++k)
                    sum +=
                        double{to_float(x[row * inner + k])} * to_float(weight[output * inner + k]);
                const double off = std::abs(to_float(y[row * outputs + output]) - sum);
                if (!(off <= most)) most = off;
            }
        return most / std::sqrt(static_cast<double>(inner));
    }
    bool wrote_past_the_end() {
        return to_float(y[rows * outputs]) != to_float(from_float<T>(12345));
    }
};

template <class T>
constexpr double limit = 2e-6;
template <>
constexpr double limit<BFloat16> = 3e-2;
template <>
constexpr double limit<Float16> = 4e-3;

template <class T>
void check(size_t rows, size_t outputs, size_t inner, bool with_bias = true) {
    INFO(rows << " rows, " << outputs << " x " << inner << ", " << sizeof(T) << " bytes");
    Layer<T> layer(rows, outputs, inner);
    if (!serves(layer.linear(with_bias), 0)) {
        const bool as_fast = dtype<T> == DType::float32 ? rows == 1 : rows > 32;  // LibTorch's own
        REQUIRE(as_fast);
        return;
    }
    layer.run(with_bias);
    CHECK(layer.error(with_bias) < limit<T>);
    CHECK(!layer.wrote_past_the_end());
}

template <class T>
void check_sizes() {
    for (const size_t rows : {1, 2, 7, 8, 9, 16, 17, 32, 33, 64}) check<T>(rows, 37, 264);
    for (const size_t rows : {2, 12, 30, 50}) {
        check<T>(rows, 1, 8, false);
        check<T>(rows, 1100, 16);  // several passes
        check<T>(rows, 19, 2056);  // several turns of the ring
    }
}

}  // namespace

TEST_CASE("linear layers of all sizes are right") {
    check_sizes<float>();
    check_sizes<BFloat16>();
    check_sizes<Float16>();
}

TEST_CASE("linear layers with many outputs are right") {
    check<BFloat16>(3, 3000, 24);
    check<BFloat16>(11, 3000, 24);
    check<BFloat16>(11, 8400, 16);
    check<float>(2, 3000, 12);
    check<float>(2, 8400, 12);
    check<float>(1, 4100, 8);
}

TEST_CASE("infinities and NaN pass linear layers as in float32") {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    Layer<float> layer(12, 20, 40);
    layer.x[3 * 40 + 5] = infinity;
    layer.weight[7 * 40 + 5] = -2;
    layer.weight[8 * 40 + 1] = NAN;
    layer.x[2] = 0.25;
    layer.weight[9 * 40 + 2] = std::numeric_limits<float>::max();
    layer.run(false);
    CHECK(layer.y[3 * 20 + 7] == -infinity);
    CHECK(std::isnan(layer.y[8]));
    CHECK(std::isfinite(layer.y[7]));
    double sum = 0;
    for (size_t k = 0; k < 40; ++k) sum += double{layer.x[k]} * layer.weight[9 * 40 + k];
    CHECK(std::abs(layer.y[9] / sum - 1) < 1e-6);
}

TEST_CASE("linear layers are the same in every call") {
    Layer<float> first(40, 130, 520), second(40, 130, 520);
    first.run();
    second.run();
    for (size_t i = 0; i < 40 * 130; ++i) CHECK(first.y[i] == second.y[i]);
}

TEST_CASE("what linear layers do not serve is said") {
    Layer<BFloat16> layer(4, 16, 64);
    LinearLayer linear = layer.linear();
    CHECK(serves(linear, 0));
    linear.inner = 63;
    CHECK(!serves(linear, 0));
    linear.inner = 56;
    linear.x = layer.x.data() + 1;
    CHECK(!serves(linear, 0));
    linear.x = layer.x.data();
    linear.dtype = DType::float64;
    CHECK(!serves(linear, 0));
    linear.dtype = DType::float32;
    linear.rows = 65;
    CHECK(!serves(linear, 0));
    linear.rows = 0;
    CHECK(!serves(linear, 0));
}
