#pragma once
// The rows of x, as the ways of a linear layer read them; what is copied is there once for all
// threads of a call.

#include <cstdint>
#include <vector>

#include "isa/functions.h"
#include "operator.h"
#include "operators/scratch.h"

namespace twinkle_pack {

// Valid as long as x.
class RowsOfX {
public:
    explicit RowsOfX(const View& x);

    const std::vector<const void*>& all() const { return rows_; }
    const void* tiles() const { return tiles_.get(); }  // null until they are made

    // Rows that are all as far apart, and begin where lines of the cache do: copies of them unless
    // they are. Lines divide their size.
    void make_even(ParallelFor parallel);
    // LinearPiece::tiles.
    void make_tiles(PackTiles pack, ParallelFor parallel);

private:
    bool are_even() const;

    std::vector<const void*> rows_;
    int64_t depth_, row_bytes_;
    Lines copies_, tiles_;
};

}  // namespace twinkle_pack
