#include "operators/norm_gradient.h"

#include <algorithm>
#include <vector>

namespace twinkle_pack {
namespace {

// Sums are made for at most this many parts of the rows at the same time.
constexpr int64_t most_parts = 32;

struct Work {
    const NormGradients& what;
    const RowShape<3>& shape;
    double* sums;
    int64_t part_rows, parts, part_sums;

    static void rows(int64_t begin, int64_t end, void* context) {
        const Work& work = *static_cast<const Work*>(context);
        const NormGradients& what = work.what;
        for (int64_t part = begin; part < end; ++part) {
            const int64_t first = part * work.part_rows;
            const int64_t stop = std::min(first + work.part_rows, work.shape.rows);
            RowWalk<3> walk(work.shape, first);
            for (int64_t row = first; row < stop; ++row, walk.next())
                what.row(walk.at[0], walk.at[1], what.weight, walk.at[2],
                         work.sums + part * work.part_sums, work.shape.n, what.eps, what.offset);
        }
    }

    static void store(int64_t begin, int64_t end, void* context) {
        const Work& work = *static_cast<const Work*>(context);
        const NormGradients& what = work.what;
        if (what.grad_weight)
            what.store(work.sums, work.parts, work.part_sums, begin, end, what.grad_weight);
        if (what.grad_bias)
            what.store(work.sums + work.shape.n, work.parts, work.part_sums, begin, end,
                       what.grad_bias);
    }
};

}  // namespace

void compute_norm_gradients(const NormGradients& what, const RowShape<3>& shape,
                            ParallelFor parallel) {
    if (shape.n == 0) return;
    const int64_t least_rows = std::max<int64_t>(1, rules::grain_elements / shape.n);
    const int64_t part_rows = std::max((shape.rows + most_parts - 1) / most_parts, least_rows);
    const int64_t parts = (shape.rows + part_rows - 1) / part_rows;
    std::vector<double> sums(static_cast<size_t>(parts * 2 * shape.n));
    Work work{what, shape, sums.data(), part_rows, parts, 2 * shape.n};
    if (parts > 0) parallel(parts, 1, Work::rows, &work);
    parallel(shape.n, rules::grain_elements, Work::store, &work);
}

}  // namespace twinkle_pack
