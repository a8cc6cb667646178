// Linear layers whose weights have fewer bits.
#include <algorithm>
#include <vector>

#include "isa/functions.h"
#include "memory.h"
#include "operators/checks.h"
#include "operators/families.h"
#include "operators/packed_weight.h"
#include "operators/row_starts.h"
#include "operators/scratch.h"
#include "rules.h"

namespace twinkle_pack {
namespace {

template <Bits bits>
void plan(const char* name, const Inputs& in, Plan& plan) {
    const View &x = in.tensors[0], &values = in.tensors[1];
    const DType dtype = packed_dtype(name, x);
    check_packed(name, x, values, in.tensors[2], bits == Bits::int8 ? Packed::int8 : Packed::int4);
    check_bias(name, x, values, in.tensors[3]);
    plan.order = Order::identity(x.dims);
    plan.add_with_last(x, values.sizes[0], dtype);
}

// The last block as wide as the others, where it has fewer columns.
class LastBlock {
public:
    LastBlock(const BitsPiece& piece, Bits bits) {
        const int64_t whole = piece.columns / bits_block, width = piece.columns % bits_block;
        if (width == 0) return;
        const int64_t bytes = bits_group_bytes(bits) * piece.groups, step = bytes / bits_block / 4;
        values_.resize(static_cast<size_t>(bytes));
        scales_.resize(static_cast<size_t>(piece.groups * bits_block));
        copy(piece.weight.values + whole * bytes, values_.data(), step, width * 4, bits_block * 4);
        copy(piece.weight.scales + whole * piece.groups * bits_block, scales_.data(), piece.groups,
             width, bits_block);
    }
    BitsPiece::Weight weight() const { return {values_.data(), scales_.data()}; }

private:
    template <class T>
    static void copy(const T* from, T* to, int64_t count, int64_t width, int64_t stride) {
        for (int64_t i = 0; i < count; ++i, from += width, to += stride)
            std::copy(from, from + width, to);
    }

    std::vector<uint8_t> values_;
    std::vector<float> scales_;
};

// Blocks that a thread gets together: what a tile has.
constexpr int64_t blocks_at_once = 4;

struct Work {
    const RowFunctions& functions;
    int dtype;
    BitsPiece piece;  // all blocks
    BitsLinear linear;
    bool in_tiles;
    // What piece.x is made of.
    std::vector<const void*> rows;
    int8_t* values;
    ActivationGroup* groups;

    static void round(int64_t begin, int64_t end, void* context) {
        const Work& work = *static_cast<Work*>(context);
        for (int64_t r = begin; r < end; ++r)
            work.functions.round_row[work.dtype](
                work.rows[static_cast<size_t>(r)], work.piece.groups,
                work.values + r * work.piece.x_stride, work.groups + r * work.piece.groups);
    }

    static void multiply(int64_t begin, int64_t end, void* context) {
        const Work& work = *static_cast<Work*>(context);
        BitsPiece piece = work.piece;
        piece.begin = begin * blocks_at_once;
        piece.end = std::min(end * blocks_at_once, work.piece.end);
        if (work.in_tiles)
            piece.scratch = scratch(bits_tiles_scratch(piece.row_count, piece.groups));
        work.linear(piece);
    }
};

// Fewer products of numbers than this are not worth waking another thread.
constexpr int64_t grain_products = 1 << 18;
constexpr int64_t grain_rounded = 1 << 14;

template <Bits bits>
void compute(const Inputs& in, const Plan& plan, void* const* results, ParallelFor parallel) {
    const View &x = in.tensors[0], &weight = in.tensors[1];
    if (x.elements() == 0 || weight.sizes[0] == 0) return;
    const RowFunctions& functions = row_functions();
    const int dtype = static_cast<int>(dtype_of(x));
    constexpr int kind = static_cast<int>(bits);
    const BitsLinear by_tiles = functions.bits_linear_tiles[kind][dtype];
    const bool in_tiles = by_tiles && row_count(x) >= rules::least_bits_tile_rows;
    Work work{
        functions, dtype,      {},      in_tiles ? by_tiles : functions.bits_linear[kind][dtype],
        in_tiles,  rows_of(x), nullptr, nullptr};
    BitsPiece& piece = work.piece;
    piece.row_count = static_cast<int64_t>(work.rows.size());
    piece.groups = x.last_size() / bits_group;
    piece.x_stride = x.last_size() + 64;  // rows a page apart would share the cache's sets
    const int64_t read = in_tiles ? (piece.row_count + 15) / 16 * 16 : piece.row_count;
    std::vector<int8_t> values(static_cast<size_t>(read * piece.x_stride));
    std::vector<ActivationGroup> groups(static_cast<size_t>(piece.row_count * piece.groups));
    piece.x = work.values = values.data();
    piece.x_groups = work.groups = groups.data();
    piece.weight = {static_cast<const uint8_t*>(weight.data),
                    static_cast<const float*>(in.tensors[2].data)};
    piece.columns = piece.result_stride = weight.sizes[0];
    const LastBlock last(piece, bits);
    piece.last = last.weight();
    piece.bias = in.tensors[3].data;
    piece.result = results[0];
    piece.end = (piece.columns + bits_block - 1) / bits_block;
    prefer_huge_pages(piece.result,
                      piece.row_count * piece.columns * element_size(plan.results[0].dtype));
    parallel(piece.row_count, std::max<int64_t>(1, grain_rounded / x.last_size()), Work::round,
             &work);
    const int64_t units = (piece.end + blocks_at_once - 1) / blocks_at_once;
    const int64_t products = x.elements() * blocks_at_once * bits_block;
    parallel(units, std::max<int64_t>(1, grain_products / products), Work::multiply, &work);
}

template <Bits bits>
constexpr Operator layer(const char* name, const char* schema, const char* unpack) {
    return {name, schema, "ttto", plan<bits>, compute<bits>, nullptr, {1, nullptr, unpack}};
}

#define LAYER(name) name, name "(Tensor x, Tensor values, Tensor scales, Tensor? bias) -> Tensor"

}  // namespace

OperatorList bits_linear_operators() {
    static constexpr Operator all[] = {layer<Bits::int8>(LAYER("linear_int8"), "unpack_int8"),
                                       layer<Bits::int4>(LAYER("linear_int4"), "unpack_int4")};
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack
