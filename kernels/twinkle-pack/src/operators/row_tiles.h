#pragma once
// Rows of x laid out once for all threads of a call.

#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "isa/functions.h"
#include "operator.h"

namespace twinkle_pack {

// Rows in sixteens.
class RowTiles {
public:
    struct Layout {
        int64_t depth;      // as `pack` counts it
        int64_t row_bytes;  // which are rounded up to lines of the cache
        PackTiles pack;
    };
    // Valid as long as this object. Throws std::bad_alloc.
    const char* make(const std::vector<const void*>& rows, const Layout& layout,
                     ParallelFor parallel);

private:
    struct Free {
        void operator()(char* memory) const;
    };

    std::unique_ptr<char, Free> memory_;
};

// Whether rows are all as far apart from each other, and begin where lines of the cache do.
bool are_even(const std::vector<const void*>& rows);

// A PackTiles that copies rows of whole lines one after the other; their depth is in bytes.
void copy_rows(const void* const* rows, int64_t count, int64_t bytes, void* to);

}  // namespace twinkle_pack
