#include "operators/conv_prepack.h"

#include <algorithm>

#include "operators/conv_tiles.h"
#include "operators/families.h"
#include "operators/scratch.h"

namespace twinkle_pack {
namespace {

enum Argument { weight_at };
enum Number { groups_at, channels_last_at };
constexpr int64_t lanes = last_lanes;

// Of a weight that is to become blocks.
ConvShape shape_of(const View& weight) {
    ConvShape shape{};
    shape.out_channels = weight.sizes[0];
    shape.channels = weight.sizes[1];
    shape.kernel[0] = weight.sizes[2];
    shape.kernel[1] = weight.sizes[3];
    shape.taps = shape.kernel[0] * shape.kernel[1];
    shape.depth = shape.channels * shape.taps;
    shape.weight_in = shape.taps;
    shape.weight_tap = 1;
    return shape;
}

// Of the blocks of a weight.
struct Sizes {
    int64_t all[weight_block_dims];

    Sizes(const ConvShape& shape, DType dtype) {
        const int64_t group = row_functions().conv_last_group[static_cast<int>(dtype)];
        const int64_t groups = shape.channels / group;
        const int64_t each = last_slab_channels(groups, shape.taps);
        is_whole = shape.channels % group == 0 && groups % each == 0;
        const int64_t slabs = groups / each;
        const int64_t sizes[] = {
            slabs, shape.out_channels / lanes, shape.kernel[0], shape.kernel[1], each, lanes,
            group};
        std::copy(sizes, sizes + weight_block_dims, all);
        block = each * shape.taps * lanes;
    }

    View view() const {
        View view{};
        view.dims = weight_block_dims;
        view.sizes = all;
        return view;
    }

    bool is_whole;  // whole groups, in slabs of one size
    int64_t block;  // of sixteen channels of a slab, in units of 4 bytes
};

bool has_loops(DType dtype) {
    const RowFunctions& functions = row_functions();
    return functions.conv_last[static_cast<int>(dtype)] != nullptr;
}

// What tiles cannot compute for want of whole ones within a slab is better left to LibTorch.
bool are_for_this_cpu(const ConvShape& shape, DType dtype) {
    const RowFunctions& functions = row_functions();
    const int index = static_cast<int>(dtype);
    return !functions.plain_tiles_are_libtorchs[index] || shape.channels % tile_channels != 0 ||
           fits_tiles(shape, functions.conv_last_group[index]);
}

bool is_right_kernel(const ConvShape& shape) {
    for (const int64_t size : shape.kernel)
        if (size < 1 || size > most_kernel) return false;
    return shape.kernel[0] * shape.kernel[1] < last_depth;
}

bool serves(const Inputs& in) {
    const View& weight = in.tensors[weight_at];
    if (weight.dims != 4 || !is_supported(weight.scalar_type) || weight.elements() == 0 ||
        !is_dense(weight, 4))
        return false;
    if (in.numbers[groups_at] != 1 || in.numbers[channels_last_at] == 0) return false;
    const ConvShape shape = shape_of(weight);
    return has_loops(dtype_of(weight)) && is_right_kernel(shape) &&
           shape.out_channels % lanes == 0 && shape.channels >= least_last_channels &&
           Sizes(shape, dtype_of(weight)).is_whole && are_for_this_cpu(shape, dtype_of(weight));
}

void plan(const char*, const Inputs& in, Plan& plan) {
    const View& weight = in.tensors[weight_at];
    const DType dtype = dtype_of(weight);
    const ConvShape shape = shape_of(weight);
    plan.order = Order::identity(weight_block_dims);
    const Sizes sizes(shape, dtype);
    plan.add(sizes.view(), dtype);
    plan.read_in_place(weight_at);
}

struct Work {
    ConvPiece whole;
    Conv lay;

    static void run(int64_t begin, int64_t end, void* context) {
        const Work& work = *static_cast<const Work*>(context);
        ConvPiece piece = work.whole;
        piece.begin = begin * lanes;
        piece.end = end * lanes;
        piece.scratch = scratch(conv_scratch);
        work.lay(piece);
    }
};

void compute(const Inputs& in, const Plan&, void* const* results, ParallelFor parallel) {
    const View& weight = in.tensors[weight_at];
    ConvShape shape = shape_of(weight);
    lay_weight(shape, dtype_of(weight), weight.data, results[0], parallel);
}

constexpr Operator conv2d_prepack() {
    Operator op{"conv2d_prepack",
                "conv2d_prepack(Tensor weight, int groups, bool channels_last) -> Tensor?",
                "tib",
                plan,
                compute,
                serves};
    op.may_decline = true;
    return op;
}

}  // namespace

bool read_blocks(const View& weight, int64_t channels, ConvShape& shape) {
    if (weight.dims != weight_block_dims || !is_supported(weight.scalar_type)) return false;
    const DType dtype = dtype_of(weight);
    constexpr int64_t most_blocks = int64_t{1} << 32;  // any numbers may stand there
    if (!has_loops(dtype) || channels < 1 || weight.sizes[1] < 1 || weight.sizes[1] > most_blocks)
        return false;
    shape.out_channels = weight.sizes[1] * lanes;
    shape.channels = channels;
    shape.kernel[0] = weight.sizes[2];
    shape.kernel[1] = weight.sizes[3];
    if (!is_right_kernel(shape)) return false;
    shape.taps = shape.kernel[0] * shape.kernel[1];
    const Sizes sizes(shape, dtype);
    constexpr uintptr_t line = 64;  // vectors are read whole
    if (!sizes.is_whole || !std::equal(sizes.all, sizes.all + weight_block_dims, weight.sizes) ||
        !is_dense(weight, weight_block_dims) ||
        reinterpret_cast<uintptr_t>(weight.data) % line != 0)
        return false;
    shape.weight_block = sizes.block;
    return true;
}

void lay_weight(ConvShape& shape, DType dtype, const void* weight, void* to, ParallelFor parallel) {
    shape.weight_block = Sizes(shape, dtype).block;
    Work work{};
    work.whole.shape = &shape;
    work.whole.weight = weight;
    work.whole.result = to;
    work.lay = row_functions().conv_last_blocks[static_cast<int>(dtype)];
    parallel(shape.out_channels / lanes, conv_units_for(shape.depth * lanes), Work::run, &work);
}

OperatorList conv_prepack_operators() {
    static constexpr Operator all[] = {conv2d_prepack()};
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack
