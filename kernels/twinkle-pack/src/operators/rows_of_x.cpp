#include "operators/rows_of_x.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "operators/row_starts.h"
#include "rules.h"

namespace twinkle_pack {
namespace {

constexpr int64_t line = 64;  // of the cache, in bytes
constexpr int64_t tile_rows = 16;

int64_t in_lines(int64_t bytes) {
    return (bytes + line - 1) / line * line;
}

struct Work {
    const void* const* rows;
    int64_t count, depth, row_bytes;
    PackTiles pack;
    char* to;

    // Sixteens.
    static void pack_tiles(int64_t begin, int64_t end, void* context) {
        const Work& work = *static_cast<const Work*>(context);
        const int64_t bytes = tile_rows * in_lines(work.row_bytes);
        for (int64_t i = begin; i < end; ++i)
            work.pack(work.rows + i * tile_rows, std::min(work.count - i * tile_rows, tile_rows),
                      work.depth, work.to + i * bytes);
    }
    static void copy_rows(int64_t begin, int64_t end, void* context) {
        const Work& work = *static_cast<const Work*>(context);
        for (int64_t r = begin; r < end; ++r)
            std::memcpy(work.to + r * work.row_bytes, work.rows[r],
                        static_cast<size_t>(work.row_bytes));
    }
};

}  // namespace

RowsOfX::RowsOfX(const View& x)
    : rows_(rows_of(x)),
      depth_(x.last_size()),
      row_bytes_(x.last_size() * element_size(dtype_of(x))) {}

bool RowsOfX::are_even() const {
    const auto at = [&](size_t i) { return reinterpret_cast<intptr_t>(rows_[i]); };
    for (size_t i = 0; i < rows_.size(); ++i)
        if (at(i) % line != 0 || (i > 1 && at(i) - at(i - 1) != at(1) - at(0))) return false;
    return true;
}

void RowsOfX::make_even(ParallelFor parallel) {
    if (are_even()) return;
    const auto count = static_cast<int64_t>(rows_.size());
    copies_ = allocate_lines(count * row_bytes_);
    Work work{rows_.data(), count, depth_, row_bytes_, nullptr, copies_.get()};
    parallel(count, std::max<int64_t>(1, rules::grain_elements / depth_), Work::copy_rows, &work);
    for (int64_t r = 0; r < count; ++r)
        rows_[static_cast<size_t>(r)] = copies_.get() + r * row_bytes_;
}

void RowsOfX::make_tiles(PackTiles pack, ParallelFor parallel) {
    const auto count = static_cast<int64_t>(rows_.size());
    const int64_t sixteens = (count + tile_rows - 1) / tile_rows;
    tiles_ = allocate_lines(sixteens * tile_rows * in_lines(row_bytes_));
    Work work{rows_.data(), count, depth_, row_bytes_, pack, tiles_.get()};
    parallel(sixteens, std::max<int64_t>(1, rules::grain_elements / (tile_rows * depth_)),
             Work::pack_tiles, &work);
}

}  // namespace twinkle_pack
