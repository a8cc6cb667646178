#pragma once
// The addresses of several tensors of one shape: a RowShape in the form that a kernel needs.

#include <stdexcept>

#include "cuda/pack.h"
#include "row_walk.h"

namespace twinkle_pack::cuda {
namespace {

// Divides numbers below half of Index's range by a divisor known on the host: a product and a
// shift.
template <class Index>
struct Divider {
    Index size, factor, shift;

    Divider() = default;
    explicit Divider(uint64_t divisor) : size(static_cast<Index>(divisor)) {
        __extension__ typedef unsigned __int128 Wide;
        for (shift = 0; (Wide{1} << shift) < divisor; ++shift) {
        }
        const Wide rest = (Wide{1} << shift) - divisor;
        factor = static_cast<Index>((rest << 8 * sizeof(Index)) / divisor + 1);
    }
    __device__ __forceinline__ Index quotient(Index dividend) const {
        return (upper_product(dividend, factor) + dividend) >> shift;
    }
};

constexpr uint64_t few_items = uint64_t{1} << 31;  // 32 bits count them
constexpr int few_dims = 4;
constexpr int all_dims = 40;  // whose results fill 2^40 elements, and no device's memory holds

// All rows, and the items (elements or vectors) in each, counted together.
template <int count, class Index, int most>
struct Places {
    // Fields that most calls need are adjacent: a kernel waits for each cache line of its
    // parameters.
    int used;
    Index items;
    char* base[count];
    int64_t step[most][count];
    int64_t item_step[count];
    Divider<Index> row, size[most];

    Places(const RowShape<count>& shape, int64_t item_elements) : used(shape.used) {
        const auto row_items = static_cast<uint64_t>(shape.n / item_elements);
        items = static_cast<Index>(static_cast<uint64_t>(shape.rows) * row_items);
        row = Divider<Index>(row_items);
        for (int d = 0; d < used; ++d) {
            size[d] = Divider<Index>(static_cast<uint64_t>(shape.dims[d].size));
            for (int k = 0; k < count; ++k) step[d][k] = shape.dims[d].step[k];
        }
        for (int k = 0; k < count; ++k) {
            base[k] = const_cast<char*>(shape.base[k]);
            item_step[k] = shape.inner_step[k] * item_elements;
        }
    }

    // Sets `at` to the beginning of a row.
    __device__ __forceinline__ void find_row(Index index, char* (&at)[count]) const {
#pragma unroll
        for (int k = 0; k < count; ++k) at[k] = base[k];
#pragma unroll 1
        for (int d = used - 1; d > 0; --d) {
            const Index outer = size[d].quotient(index);
            const auto place = static_cast<int64_t>(index - outer * size[d].size);
#pragma unroll
            for (int k = 0; k < count; ++k) at[k] += place * step[d][k];
            index = outer;
        }
        if (used > 0)
#pragma unroll
            for (int k = 0; k < count; ++k) at[k] += static_cast<int64_t>(index) * step[0][k];
    }

    // Sets `at` to an item. Returns the item's place in the row.
    __device__ __forceinline__ Index find(Index item, char* (&at)[count]) const {
        const Index index = row.quotient(item);
        const Index place = item - index * row.size;
        find_row(index, at);
#pragma unroll
        for (int k = 0; k < count; ++k) at[k] += static_cast<int64_t>(place) * item_step[k];
        return place;
    }
};

// Rows at a constant distance.
template <int count>
struct EvenRows {
    char* base[count];
    int64_t step[count];

    explicit EvenRows(const RowShape<count>& shape) {
        for (int k = 0; k < count; ++k) {
            base[k] = const_cast<char*>(shape.base[k]);
            step[k] = shape.used == 0 ? 0 : shape.dims[0].step[k];
        }
    }
    __device__ __forceinline__ void find_row(uint32_t row, char* (&at)[count]) const {
#pragma unroll
        for (int k = 0; k < count; ++k) at[k] = base[k] + static_cast<int64_t>(row) * step[k];
    }
};

// Whether 32 bits can count this many items, in few dimensions.
template <int count>
bool has_few(const RowShape<count>& shape, int64_t items) {
    return shape.used <= few_dims && static_cast<uint64_t>(items) < few_items;
}

// Whether every row of each tensor is a whole number of vectors of so many elements, and is aligned
// for them.
template <int count>
bool has_vectors(const RowShape<count>& shape, int64_t elements) {
    if (shape.n % elements != 0) return false;
    for (int k = 0; k < count; ++k) {
        if (!at_vectors(shape.base[k]) || shape.inner_step[k] != shape.element_size[k])
            return false;
        for (int d = 0; d < shape.used; ++d)
            if (shape.dims[d].step[k] % vector_bytes != 0) return false;
    }
    return true;
}

template <int count>
void check_dims(const RowShape<count>& shape) {
    if (shape.used > all_dims)
        throw std::runtime_error("twinkle-pack: more than 40 dimensions that cannot be joined");
}

__device__ __host__ constexpr uint64_t quotient_up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

}  // namespace
}  // namespace twinkle_pack::cuda
