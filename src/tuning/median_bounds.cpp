#include "tuning/median_bounds.h"

#include <algorithm>
#include <cmath>

namespace twinkle::tuning {

ProcessNoise process_noise(std::string_view platform, int threads) {
    if (platform != "cpu") {
        return {0.01, 0};
    }
    return {0.025, threads > 1 ? 0.5 : 0};
}

Times bounded_median(double median_us, double interquartile_us, std::size_t runs,
                     const ProcessNoise& noise) {
    const double notch = 1.57 * interquartile_us / std::sqrt(static_cast<double>(runs));
    const double unsure = notch + noise.share * median_us + noise.us;
    const auto ns = [](double us) { return std::max<std::int64_t>(1, std::llround(us * 1000)); };
    return {ns(median_us - unsure), ns(median_us), ns(median_us + unsure),
            static_cast<std::int64_t>(runs)};
}

}  // namespace twinkle::tuning
