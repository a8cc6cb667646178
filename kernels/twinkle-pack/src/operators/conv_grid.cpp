#include "operators/conv_grid.h"

#include <algorithm>

#include "operators/convolution.h"
#include "operators/parts.h"

namespace twinkle_pack {
namespace {

int64_t ceiling(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

// Copying a weight takes as long as its products with so many pixels.
constexpr double pixels_a_copy = 4;

}  // namespace

ConvGrid divide(const ConvDivision& all) {
    const int64_t panels = ceiling(all.pixels, all.panel);
    const int64_t most_panels = std::max<int64_t>(1, all.most_pixels / all.panel);
    const int64_t granules = ceiling(all.channels, all.granule);
    const int64_t units = ceiling(granules, all.most_in_unit);
    const int64_t worth = all.copies * all.pixels * all.products / conv_grain_products;
    const int64_t threads = std::clamp<int64_t>(worth, 1, std::max<int64_t>(1, all.threads));
    const int64_t least = ceiling(panels, most_panels);
    const int64_t most = std::min(panels, least + 2 * threads - 1);
    const int64_t parts = parts_of_least_time(least, most, [&](int64_t tried) {
        const int64_t each = ceiling(panels, tried);
        const int64_t rounds = ceiling(all.copies * ceiling(panels, each) * units, threads);
        const double pixels = static_cast<double>(each * all.panel);
        return static_cast<double>(rounds) * (pixels + pixels_a_copy);
    });
    const int64_t each = ceiling(panels, parts);
    return {ceiling(panels, each), each * all.panel, units, granules};
}

}  // namespace twinkle_pack
