#pragma once
// Walks the rows of several tensors of one shape together. A row lies along the dimension that is
// innermost in memory.

#include <cstdint>

#include "operator.h"

namespace twinkle_pack {

// The address and layout of a tensor's elements.
struct Placed {
    const void* data;
    const int64_t* strides;  // in elements
    int64_t element_size;
};

inline Placed placed(const View& view) {
    return {view.data, view.strides, twinkle_pack::element_size(dtype_of(view))};
}

inline Placed placed(const Result& result, void* data) {
    return {data, result.strides, twinkle_pack::element_size(result.dtype)};
}

// Merges dimensions that are contiguous in all tensors.
template <int count>
struct RowShape {
    struct Dim {
        int64_t size;
        int64_t step[count];  // in bytes
    };

    // `joined`: merges the rows, too, if they are contiguous: one long row.
    RowShape(const int64_t* sizes, const Order& order, const Placed (&tensors)[count],
             bool joined) {
        for (int k = 0; k < count; ++k) {
            base[k] = static_cast<const char*>(tensors[k].data);
            element_size[k] = inner_step[k] = tensors[k].element_size;
        }
        for (int64_t i = 0; i < order.dims; ++i) {
            const int d = order.at[i];
            const bool row = i == order.dims - 1;
            if (sizes[d] == 1 && !row) continue;
            Dim dim;
            dim.size = sizes[d];
            for (int k = 0; k < count; ++k)
                dim.step[k] =
                    sizes[d] == 1 ? element_size[k] : tensors[k].strides[d] * element_size[k];
            for (int k = 0; row && k < count; ++k) inner_step[k] = dim.step[k];
            if (!row) {
                rows *= dim.size;
                add(dim);
            } else if (joined && joins(dim)) {
                n = dims[--used].size * dim.size;
                rows = used == 0 ? 1 : rows / dims[used].size;
            } else {
                n = dim.size;
            }
        }
    }

    int64_t rows = 1, n = 1;
    const char* base[count];
    int64_t element_size[count];
    int64_t inner_step[count];  // in a row; that of an element wherever `must_copy` was heeded
    int used = 0;
    Dim dims[most_dims];

private:
    bool joins(const Dim& inner) const {
        if (used == 0) return false;
        for (int k = 0; k < count; ++k)
            if (dims[used - 1].step[k] != inner.step[k] * inner.size) return false;
        return true;
    }

    void add(const Dim& dim) {
        if (joins(dim)) {
            const int64_t size = dims[used - 1].size * dim.size;
            dims[used - 1] = dim;
            dims[used - 1].size = size;
        } else {
            dims[used++] = dim;
        }
    }
};

template <int count>
class RowWalk {
public:
    RowWalk(const RowShape<count>& shape, int64_t row) : shape_(shape) {
        for (int k = 0; k < count; ++k) at[k] = const_cast<char*>(shape.base[k]);
        for (int d = shape.used - 1; d >= 0; --d) {
            index_[d] = row % shape.dims[d].size;
            row /= shape.dims[d].size;
            for (int k = 0; k < count; ++k) at[k] += index_[d] * shape.dims[d].step[k];
        }
    }

    void next() {
        for (int d = shape_.used - 1; d >= 0; --d) {
            const auto& dim = shape_.dims[d];
            if (++index_[d] < dim.size) {
                for (int k = 0; k < count; ++k) at[k] += dim.step[k];
                return;
            }
            index_[d] = 0;
            for (int k = 0; k < count; ++k) at[k] -= dim.step[k] * (dim.size - 1);
        }
    }

    char* at[count];  // where the row of each tensor begins

private:
    const RowShape<count>& shape_;
    int64_t index_[most_dims];
};

// Calls `row(at, next)` for each row: its address in each tensor, and that of the next one (the
// same for a thread's last).
template <int count, class Row>
void for_each_row(const RowShape<count>& shape, ParallelFor parallel, const Row& row) {
    struct Work {
        const RowShape<count>& shape;
        const Row& row;

        static void run(int64_t begin, int64_t end, void* context) {
            const Work& work = *static_cast<const Work*>(context);
            RowWalk<count> walk(work.shape, begin);
            for (int64_t i = begin; i < end; ++i) {
                char* at[count];
                for (int k = 0; k < count; ++k) at[k] = walk.at[k];
                if (i + 1 < end) walk.next();
                work.row(at, walk.at);
            }
        }
    };
    if (shape.rows == 0 || shape.n == 0) return;
    Work work{shape, row};
    const int64_t grain = parallel.grain_or(rules::grain_elements) / shape.n;
    parallel(shape.rows, grain > 0 ? grain : 1, Work::run, &work);
}

// Calls `piece(at, n)` for pieces of rows, so that threads also share long rows; `done()` after a
// thread's last.
template <int count, class Piece, class Done>
void for_each_piece(const RowShape<count>& shape, ParallelFor parallel, const Piece& piece,
                    const Done& done) {
    struct Work {
        const RowShape<count>& shape;
        const Piece& piece;
        const Done& done;
        int64_t length, pieces;  // length of a piece; pieces in a row

        static void run(int64_t begin, int64_t end, void* context) {
            const Work& work = *static_cast<const Work*>(context);
            RowWalk<count> walk(work.shape, begin / work.pieces);
            int64_t i = begin;
            while (i < end) {
                // This thread's pieces of a row go in one call.
                const int64_t first = i % work.pieces;
                const int64_t left = end - i < work.pieces - first ? end - i : work.pieces - first;
                const int64_t from = first * work.length;
                const int64_t stop = (first + left) * work.length;
                char* at[count];
                for (int k = 0; k < count; ++k)
                    at[k] = walk.at[k] + from * work.shape.element_size[k];
                work.piece(at, (stop < work.shape.n ? stop : work.shape.n) - from);
                i += left;
                if (i < end) walk.next();
            }
            work.done();
        }
    };
    if (shape.rows == 0 || shape.n == 0) return;
    constexpr int64_t most = 1024;
    const int64_t length = shape.n < most ? shape.n : most;
    const int64_t pieces = (shape.n + length - 1) / length;
    Work work{shape, piece, done, length, pieces};
    const int64_t grain = parallel.grain_or(rules::grain_elements) / length;
    parallel(shape.rows * pieces, grain > 0 ? grain : 1, Work::run, &work);
}

}  // namespace twinkle_pack
