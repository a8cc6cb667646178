#include "operators/window_rows.h"

#include <algorithm>

#include "operators/convolution.h"
#include "operators/parts.h"
#include "operators/scratch.h"

namespace twinkle_pack {
namespace {

constexpr int64_t granule = 16, least_granules = 8;  // channels; of a unit

struct Work {
    ConvPiece whole;
    Conv compute;
    int64_t rows, units, granules;

    int64_t first_channel(int64_t unit) const {
        return std::min(granules * unit / units * granule, whole.shape->channels);
    }

    void set_units(int64_t threads) {
        granules = (whole.shape->channels + granule - 1) / granule;
        units = parts_of_least_time(1, granules / least_granules, [&](int64_t parts) {
            const int64_t rounds = (rows * parts + threads - 1) / threads;
            // A unit lists what its windows see, which takes as long as some of its vectors.
            const double each = static_cast<double>(granules) / static_cast<double>(parts);
            return static_cast<double>(rounds) * (each + 2);
        });
    }

    // Units of a row of the result are neighbours; whole rows are computed together.
    static void run(int64_t begin, int64_t end, void* context) {
        const Work& work = *static_cast<const Work*>(context);
        const ConvShape& shape = *work.whole.shape;
        ConvPiece piece = work.whole;
        piece.scratch = scratch(conv_scratch + shape.channels * int64_t{sizeof(float)});
        while (begin < end) {
            const int64_t row = begin / work.units, first = begin - row * work.units;
            const bool is_whole = first == 0 && end - begin >= work.units;
            const int64_t count = is_whole ? (end - begin) / work.units : 1;
            const int64_t last = is_whole ? work.units : std::min(work.units, first + end - begin);
            piece.pixel_begin = row * shape.out_width;
            piece.pixel_end = (row + count) * shape.out_width;
            piece.begin = work.first_channel(first);
            piece.end = work.first_channel(last);
            work.compute(piece);
            begin += count * (last - first);
        }
    }
};

}  // namespace

void compute_window_rows(const ConvPiece& whole, Conv compute, ParallelFor parallel) {
    const ConvShape& shape = *whole.shape;
    Work work{whole, compute, shape.images * shape.out_height, 1, 0};
    const int64_t products = shape.out_width * shape.taps * shape.channels;
    const int64_t worth = work.rows * products / conv_grain_products;
    work.set_units(std::clamp<int64_t>(worth, 1, std::max<int64_t>(1, parallel.threads)));
    parallel(work.rows * work.units, conv_units_for(products / work.units), Work::run, &work);
}

}  // namespace twinkle_pack
