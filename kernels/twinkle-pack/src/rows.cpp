#include "rows.h"

namespace twinkle_pack {

Rows::Rows(const View& view, int64_t element_size) : data_(static_cast<const char*>(view.data)) {
    const int64_t last = view.dims - 1;
    if (last >= 0 && view.sizes[last] > 1 && view.strides[last] != 1) readable_ = false;
    for (int64_t d = 0; d < last; ++d) {
        const Dim dim{view.sizes[d], view.strides[d] * element_size};
        if (dim.size == 1) continue;
        if (used_ > 0 && dims_[used_ - 1].step == dim.step * dim.size) {
            dims_[used_ - 1] = {dims_[used_ - 1].size * dim.size, dim.step};
        } else if (used_ < dims_.size()) {
            dims_[used_++] = dim;
        } else {
            readable_ = false;
            return;
        }
    }
}

}  // namespace twinkle_pack
