#pragma once
// Where each row (the last dimension) of a strided tensor lies.

#include <array>
#include <cstdint>

#include "view.h"

namespace twinkle_pack {

class Rows {
public:
    Rows(const View& view, int64_t element_size);

    // Elements of a row follow each other, and the other dimensions are few after those that follow
    // each other in memory are joined. Anything else must be copied first.
    bool readable() const { return readable_; }

    // All rows follow each other without a gap: they are one long row.
    bool dense(int64_t row_bytes) const {
        return used_ == 0 || (used_ == 1 && dims_[0].step == row_bytes);
    }

    const char* operator[](int64_t row) const {
        const char* at = data_;
        for (size_t d = used_; d > 1; --d) {
            at += row % dims_[d - 1].size * dims_[d - 1].step;
            row /= dims_[d - 1].size;
        }
        return used_ > 0 ? at + row * dims_[0].step : at;
    }

private:
    struct Dim {
        int64_t size;
        int64_t step;  // in bytes
    };
    const char* data_;
    std::array<Dim, 8> dims_{};
    size_t used_ = 0;
    bool readable_ = true;
};

}  // namespace twinkle_pack
