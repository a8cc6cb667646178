#include "tuning/median_bounds.h"

#include <random>

#include "../catch.h"

using namespace twinkle::tuning;

TEST_CASE("more runs make a median surer, down to what processes differ by") {
    const ProcessNoise noise{0.02, 0};
    const Times few = bounded_median(100, 10, 16, noise);
    const Times many = bounded_median(100, 10, 10'000, noise);
    CHECK(few.median == 100'000);
    CHECK(few.upper == 100'000 + 2'000 + 3'925);  // 1.57 * 10 us / 4, and the share
    CHECK(many.upper == 100'000 + 2'000 + 157);
    CHECK(many.lower == 100'000 - 2'000 - 157);
    CHECK(many.runs == 10'000);
}

TEST_CASE("a call of a thread's waking time is unsure by that") {
    const ProcessNoise noise = process_noise("cpu", 2);
    const Times one = bounded_median(7.5, 0, 1000, noise);
    const Times other = bounded_median(6.7, 0, 1000, noise);
    CHECK_FALSE(surely_slower(one, other));  // by 0.8 us, each by half of one
    const ProcessNoise alone = process_noise("cpu", 1);
    CHECK(surely_slower(bounded_median(7.5, 0, 1000, alone), bounded_median(6.7, 0, 1000, alone)));
    CHECK(noise.without_constant().us == 0);
    CHECK(noise.without_constant().share == noise.share);
}

TEST_CASE("on a CPU 5 % are a tie, and 8 % of calm measurements are not") {
    const ProcessNoise noise = process_noise("cpu", 1);
    const auto of = [&](double us) { return bounded_median(us, us / 10, 400, noise); };
    CHECK_FALSE(surely_slower(of(104), of(100)));
    CHECK(surely_slower(of(108), of(100)));
    const ProcessNoise calmer = process_noise("cuda", 1);
    CHECK(surely_slower(bounded_median(104, 1, 400, calmer), bounded_median(100, 1, 400, calmer)));
}

TEST_CASE("bounds enclose their median and are positive") {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> us(0, 50);
    for (int i = 0; i < 200; ++i) {
        const Times times = bounded_median(us(random), us(random), 1 + i, {0.025, 0.5});
        CHECK(times.lower >= 1);
        CHECK(times.lower <= times.median);
        CHECK(times.median <= times.upper);
    }
}
