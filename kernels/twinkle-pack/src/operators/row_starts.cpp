#include "operators/row_starts.h"

#include <cstddef>

#include "operator.h"

namespace twinkle_pack {

int64_t row_count(const View& x) {
    int64_t rows = 1;
    for (int64_t d = 0; d + 1 < x.dims; ++d) rows *= x.sizes[d];
    return rows;
}

std::vector<const void*> rows_of(const View& x) {
    const int64_t size = element_size(dtype_of(x));
    std::vector<const void*> rows(static_cast<size_t>(row_count(x)));
    int64_t index[most_dims] = {};
    const char* at = static_cast<const char*>(x.data);
    for (const void*& row : rows) {
        row = at;
        for (int64_t d = x.dims - 2; d >= 0; --d) {
            at += x.strides[d] * size;
            if (++index[d] < x.sizes[d]) break;
            at -= index[d] * x.strides[d] * size;
            index[d] = 0;
        }
    }
    return rows;
}

}  // namespace twinkle_pack
