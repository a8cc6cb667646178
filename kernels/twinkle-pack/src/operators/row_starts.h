#pragma once
// The rows of a tensor: all dimensions but the last.

#include <cstdint>
#include <vector>

#include "view.h"

namespace twinkle_pack {

int64_t row_count(const View& x);
// Where each row begins.
std::vector<const void*> rows_of(const View& x);

}  // namespace twinkle_pack
