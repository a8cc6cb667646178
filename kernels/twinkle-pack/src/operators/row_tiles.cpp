#include "operators/row_tiles.h"

#include <algorithm>
#include <cstring>

#include "rules.h"

namespace twinkle_pack {
namespace {

constexpr int64_t line = 64;  // of the cache, in bytes
constexpr int64_t tile_rows = 16;

struct Work {
    const std::vector<const void*>& rows;
    RowTiles::Layout layout;
    int64_t tile_bytes;
    char* to;

    static void run(int64_t begin, int64_t end, void* context) {
        const Work& work = *static_cast<const Work*>(context);
        for (int64_t i = begin; i < end; ++i) {
            const int64_t left = static_cast<int64_t>(work.rows.size()) - i * tile_rows;
            work.layout.pack(work.rows.data() + i * tile_rows, std::min(left, tile_rows),
                             work.layout.depth, work.to + i * work.tile_bytes);
        }
    }
};

}  // namespace

void RowTiles::Free::operator()(char* memory) const {
    operator delete(memory, std::align_val_t{line});
}

const char* RowTiles::make(const std::vector<const void*>& rows, const Layout& layout,
                           ParallelFor parallel) {
    const int64_t count = (static_cast<int64_t>(rows.size()) + tile_rows - 1) / tile_rows;
    const int64_t tile_bytes = tile_rows * ((layout.row_bytes + line - 1) / line * line);
    memory_.reset(static_cast<char*>(operator new(static_cast<size_t>(count * tile_bytes),
                                                  std::align_val_t{line})));
    Work work{rows, layout, tile_bytes, memory_.get()};
    parallel(count, std::max<int64_t>(1, rules::grain_elements / (tile_rows * layout.depth)),
             Work::run, &work);
    return memory_.get();
}

bool are_even(const std::vector<const void*>& rows) {
    const auto at = [&](size_t i) { return reinterpret_cast<intptr_t>(rows[i]); };
    for (size_t i = 0; i < rows.size(); ++i)
        if (at(i) % line != 0 || (i > 1 && at(i) - at(i - 1) != at(1) - at(0))) return false;
    return true;
}

void copy_rows(const void* const* rows, int64_t count, int64_t bytes, void* to) {
    for (int64_t r = 0; r < count; ++r)
        std::memcpy(static_cast<char*>(to) + r * bytes, rows[r], static_cast<size_t>(bytes));
}

}  // namespace twinkle_pack
