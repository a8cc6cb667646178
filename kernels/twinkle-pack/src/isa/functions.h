#pragma once
// The inner loops, one table of them for each instruction set. A row is n elements; pointers need
// no alignment.

#include <cstdint>

#include "rules.h"
#include "view.h"

namespace twinkle_pack {

enum class Activation { silu, gelu, gelu_tanh, gelu_fast, gelu_quick, relu };
constexpr int activation_count = 6;
constexpr int gate_count = 3;  // silu, gelu and gelu_tanh gate another tensor

// Dtypes of the weight that multiplies the normalized values, and one index for no weight.
constexpr int weight_count = dtype_count + 1, no_weight = dtype_count;

// `stream`: the result may bypass the cache (only float32 gains); a caller that asks for it must
// call `fence` before other threads read it.
using UnaryRow = void (*)(const void* x, void* result, int64_t n, bool stream);
using UnaryBackwardRow = void (*)(const void* grad, const void* x, void* grad_x, int64_t n);
using GatedRow = void (*)(const void* gate, const void* up, void* result, int64_t n, bool stream);
using GatedBackwardRow = void (*)(const void* grad, const void* gate, const void* up,
                                  void* grad_gate, void* grad_up, int64_t n);
using AddRow = void (*)(const void* a, const void* b, void* sum, int64_t n);

// `next_row`: the x of the next call.
using RmsNormRow = void (*)(const void* x, const void* next_row, const void* weight, void* result,
                            int64_t n, double eps, double offset);
using LayerNormRow = void (*)(const void* x, const void* next_row, const void* weight,
                              const void* bias, void* result, int64_t n, double eps);
// Adds a row's part of the weight's gradient (and, after those n, of the bias's) to `sums`.
using NormBackwardRow = void (*)(const void* grad, const void* x, const void* weight, void* grad_x,
                                 double* sums, int64_t n, double eps, double offset);
// Adds up this many parts of sums, `stride` apart, and rounds the result once.
using StoreSums = void (*)(const double* sums, int64_t parts, int64_t stride, int64_t begin,
                           int64_t end, void* result);

// Rotates the first r elements of n; transposed: as for the gradient.
using RotaryRow = void (*)(const void* x, const void* cos, const void* sin, void* result, int64_t r,
                           int64_t n, bool transposed);

// What becomes of a product of x with a weight, or of two, before it is rounded once.
enum class Finish { none, silu, gelu, gelu_tanh, relu, silu_mul, gelu_mul, gelu_tanh_mul };
constexpr int finish_count = 8;

// Columns [begin, end) of act(x weight^T + bias) for some rows of x; of a gate's finish, times
// those of a second weight. Weights are [columns, depth], rows contiguous.
struct LinearPiece {
    const void* const* rows;  // of x
    int64_t row_count, depth;
    struct Factor {
        const void* weight;
        int64_t stride;    // in elements
        const void* bias;  // null: none
    } factors[2];
    Finish finish;
    void* result;  // of the first of these rows
    int64_t result_stride;
    int64_t begin, end;
    void* scratch;      // aligned to 64; its size is in operators/linear.cpp
    const void* tiles;  // of `rows`, as PackTiles makes them
    bool fetch_near;    // of a weight in panels: prefetches go into the first cache
};
using Linear = void (*)(const LinearPiece& piece);
// Makes tiles of `count` rows, at most 16, which LinearPiece::tiles has one after the other: as
// many bytes as 16 rows have whose depth is rounded up to 64 bytes.
using PackTiles = void (*)(const void* const* rows, int64_t count, int64_t depth, void* to);
constexpr int64_t tiles_scratch = 128 * 1024;

// Sums are kept for this many columns at a time, and this many rows.
constexpr int64_t few_columns = 64, many_columns = 1024, many_rows = 256;
constexpr int64_t most_few_rows = 64;
// A few rows are read in pieces of at most so many bytes together, which the second cache holds.
constexpr int64_t few_bytes = 384 * 1024;
// Depth of a panel, in groups of 4 bytes.
constexpr int64_t many_depth = 256;
// Columns of a panel of a weight that lies in panels.
constexpr int64_t panel_columns = 32;

// Convolutions of two dimensions, in one group: a channel of the result is a row of the weight,
// [out_channels, channels * kernel], times what each pixel of the result sees of x.
enum class ConvFinish { none, relu, relu6, silu, gelu, hardswish };
constexpr int conv_finish_count = 6;
struct ConvShape {
    int64_t images, channels, height, width;  // of x
    int64_t out_channels, out_height, out_width;
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    // In elements. A row's pixels, and those of a channel of the result and the residual, are
    // dense.
    int64_t x_image, x_channel, x_row, x_pixel;
    int64_t result_image, residual_image, residual_channel;
    // Where channels lie last: from pixel to pixel; and of the weight.
    int64_t result_pixel, residual_pixel;
    int64_t weight_in, weight_tap;
    // Of a weight in blocks (operators/conv_prepack.h), in units of 4 bytes: from sixteen channels
    // of the result to the next, within a slab; 0: it lies as PyTorch's.
    int64_t weight_block;

    int64_t taps, depth, out_pixels;  // products of these
    bool is_pointwise;                // a pixel of the result sees one of x, in the same place
    bool is_patched;                  // too few channels to read x along them
};
constexpr int64_t most_kernel = 64, most_conv_stride = 64;  // in each direction

// Some channels of the result, at some of the pixels of all images.
struct ConvPiece {
    const ConvShape* shape;
    const void *x, *weight, *residual;  // residual: null for none
    void* result;
    // sum * scale + shift, by channel; then the residual is added, and the activation follows; or
    // the other way round.
    const float *scale, *shift;
    ConvFinish finish;
    bool residual_last;
    int64_t begin, end;              // channels of the result
    int64_t pixel_begin, pixel_end;  // of more than one row, whole rows of x
    int64_t band_channels;           // for which `scratch` has room
    int64_t most_pixels;             // of a piece where channels lie last
    float* winograd_weights;         // as loops/winograd_weights.h has them
    int64_t winograd_stride;         // from product to product
    void* scratch;                   // aligned to 64; as large as the operator makes it
};
using Conv = void (*)(const ConvPiece& piece);

// A convolution by tiles, of sixteen channels of the result and positions. What positions see of x
// lies as far apart from each other as from the next; where a row of the image ends, some of them
// are no pixels.
struct ConvTiles {
    const ConvPiece* piece;      // whose pixels mean nothing here
    const char* x;               // what the first position sees at the first tap
    int64_t image, pixel;        // bytes from image to image, and from position to position
    const int64_t* taps;         // bytes from there to each tap
    int64_t groups;              // of channels that a tile has
    int64_t out_channels;        // of the result; those of the piece's shape are whole vectors
    int64_t positions;           // of an image
    int64_t pitch, rows, width;  // positions of a row; rows, and pixels of each
    // Blocks of positions, through all images: at most most_tile_blocks.
    int64_t begin, end;
};
using ConvByTiles = void (*)(const ConvTiles& all);
constexpr int64_t tile_positions = 32;  // of a block
constexpr int64_t tile_channels = 32;   // of x: in each tile at most
constexpr int64_t most_tile_blocks = 16;
constexpr int64_t conv_tiles_scratch = tile_positions * (32 * 4 + most_tile_blocks * 8);
constexpr int64_t tile_blocks(int64_t positions) {
    return (positions + tile_positions - 1) / tile_positions;
}

// Channels and pixels of the result that are computed together, and the depth in groups of 4 bytes.
constexpr int64_t conv_rows = 256, conv_pixels = 512, conv_depth = 288;
// Of ConvPiece::scratch, beside what is copied of x.
constexpr int64_t conv_scratch = int64_t{1} << 20;
// Channels of the result that are computed together at most, where channels lie last.
constexpr int64_t most_last_group = 256;
// Groups of channels of x that are added up before they meet the sum of others: each addition
// rounds. Those of all taps of some channels are together, if they are not too many: a slab.
constexpr int64_t conv_chain = 144, last_lanes = 16, last_depth = 4 * conv_chain;
// Groups of channels of x that share a slab: as many in each, unless only small parts divide all;
// then whole vectors, and about as many.
inline int64_t last_slab_channels(int64_t channels, int64_t taps) {
    const int64_t most = taps < last_depth ? last_depth / taps : 1;
    const int64_t fitting = most < conv_chain ? most : conv_chain;
    if (channels <= fitting) return channels;
    for (int64_t each = fitting; each * 2 >= fitting; --each)
        if (channels % each == 0) return each;
    const int64_t parts = (channels + fitting - 1) / fitting;
    const int64_t each = (channels + parts - 1) / parts, rounded = (each + 15) / 16 * 16;
    return rounded <= fitting ? rounded : each;
}
// Winograd's filtering (loops/winograd.h): products of a tile, and tiles of a piece at most, unless
// one row of tiles has more.
constexpr int winograd_products = 16;
constexpr int64_t most_winograd_tiles = 64;

// Scaled dot product attention. Strides are those of batches, heads and rows, in elements; what
// lies along the last dimension is dense.
enum class AttentionMask { none, added, kept };  // kept: bytes; where they are zero, -inf
struct AttentionShape {
    int64_t batches, heads, heads_each;  // each: so many of the queries' share one of the keys'
    int64_t rows, columns, width;        // queries, keys, elements of each
    int64_t query[3], key[3], value[3], mask[3], result[3];
    float scale;
    AttentionMask mask_kind;
    bool is_causal;  // row i sees keys up to i
};
// Rows [begin, end) of one head.
struct AttentionPiece {
    const AttentionShape* shape;
    const void *query, *key, *value, *mask;
    void* result;
    int64_t begin, end;  // at most attention_rows
    void* scratch;
};
using Attend = void (*)(const AttentionPiece& piece);
// Rows of a piece, keys of a block, and elements of a key, at most.
constexpr int64_t attention_rows = 192, attention_columns = 256, attention_width = 256;
constexpr int64_t attention_scratch = int64_t{3} << 18;

// Linear layers with fewer bits: weights of 8 or 4 bits and activations of 8, in groups along the
// depth that have a scale each. Within a group sums are exact integers; groups are summed in
// float32.
constexpr int64_t bits_group = 64;
enum class Bits { int8, int4 };
constexpr int bits_count = 2;

// A weight lies in blocks of 16 columns, which are read from their beginning to their end, however
// many rows there are. operators/families.h has the layout.
constexpr int64_t bits_block = 16;
constexpr int64_t bits_group_bytes(Bits bits) {  // of a block
    return bits_block * (bits == Bits::int8 ? bits_group : bits_group / 2);
}
// What is added to each value of a weight, so that none is negative.
constexpr int32_t bits_offset(Bits bits) {
    return bits == Bits::int8 ? 128 : 8;
}

// A group of activations beside its 64 values: their scale, and the sum of the values.
struct ActivationGroup {
    float scale;  // NaN where one of them is infinite or NaN
    int32_t sum;
};
// Rounds a row: x = value * scale, the largest magnitude is 127.
using RoundRow = void (*)(const void* x, int64_t groups, int8_t* values, ActivationGroup* to);

struct BitsPiece {
    const int8_t* x;  // rows of this stride, in bytes
    int64_t x_stride, row_count, groups;
    const ActivationGroup* x_groups;  // [rows, groups]
    // Of all whole blocks, and of the last one where it has fewer columns: as wide as the others.
    struct Weight {
        const uint8_t* values;
        const float* scales;
    } weight, last;
    const void* bias;  // null: none
    void* result;
    int64_t result_stride, columns;
    int64_t begin, end;  // blocks
    void* scratch;       // of tiles: bits_tiles_scratch
};
using BitsLinear = void (*)(const BitsPiece& piece);
constexpr int64_t bits_tile_blocks = 4;
constexpr int64_t bits_tiles_scratch(int64_t rows, int64_t groups) {
    return groups * (1024 * bits_tile_blocks + 4 * ((rows + 15) / 16 * 16));
}

struct RowFunctions {
    const char* isa;
    void (*fence)();
    UnaryRow unary[activation_count][dtype_count];
    UnaryBackwardRow unary_backward[activation_count][dtype_count];
    GatedRow gated[gate_count][dtype_count];
    GatedBackwardRow gated_backward[gate_count][dtype_count];
    AddRow add[dtype_count];
    // [dtype of x][of the weight]; rounded to x's dtype before the weight, or after it
    RmsNormRow rms_norm[dtype_count][weight_count];
    RmsNormRow rms_norm_last[dtype_count][weight_count];
    NormBackwardRow rms_norm_backward[dtype_count][weight_count];
    NormBackwardRow rms_norm_last_backward[dtype_count][weight_count];
    LayerNormRow layer_norm[dtype_count][weight_count];
    NormBackwardRow layer_norm_backward[dtype_count][weight_count];
    StoreSums store_sums[dtype_count];
    RotaryRow rotary[dtype_count][dtype_count];  // [dtype of x][of cos and sin]
    RotaryRow rotary_pairs[dtype_count][dtype_count];
    Linear linear_few[dtype_count], linear_many[dtype_count];
    // Null: this CPU has no such instructions. Where it has, these are the way of many rows.
    PackTiles pack_tiles[dtype_count];
    Linear linear_tiles[dtype_count];
    LinearBorders linear_borders[dtype_count];
    // Of weights in panels (operators/linear_prepack.h). Null: there are none.
    Linear lay_panels[dtype_count];  // puts the weight of a piece into its result
    Linear linear_packed[dtype_count];
    int64_t panel_group[dtype_count];  // elements along the depth that are multiplied together
    // Null: this CPU has no such instructions. Where it has, this is the way of these weights from
    // rules::least_panel_tile_rows on. Rows of x are as far apart from each other as from the next,
    // and begin where lines of the cache do.
    Linear linear_panel_tiles[dtype_count];
    // Whether prefetches go into the first cache, else the second. AMD's CPUs take 3 to 6 % less
    // time so with few rows, Intel's up to 20 % more: few can wait for the first one there
    // (measured on Zen 5 and a Xeon of 2024).
    bool panels_near;
    // Null: there is none. Of depthwise ones each channel sees its own alone: `begin` and `end` are
    // planes of the result, through all images, with all of their pixels.
    Conv conv_dense[dtype_count], conv_depthwise[dtype_count];
    Conv max_pool[dtype_count];  // of planes, too
    // Where channels lie last. The latter two compute whole rows of the result.
    Conv conv_last_blocks[dtype_count];  // puts the weight of a piece into its result, in blocks
    Conv conv_last[dtype_count], depthwise_last[dtype_count], max_pool_last[dtype_count];
    int64_t conv_last_group[dtype_count];  // channels of x that are multiplied together
    // Null: this CPU has no such instructions. Where it has, these compute weights in blocks.
    ConvByTiles conv_tiles[dtype_count];
    // Whether LibTorch takes less time for weights in PyTorch's layout, of whole tiles of channels.
    bool plain_tiles_are_libtorchs[dtype_count];
    // The same of float32 for 3 x 3 pixels, by fewer products: first all channels' weights, then
    // pieces of whole rows of tiles of 2 x 2 pixels.
    Conv winograd_weights, conv_winograd;
    // Null: there is none. Calls of fewer rows are LibTorch's.
    Attend attention[dtype_count];
    int64_t attention_least_rows[dtype_count];
    RoundRow round_row[dtype_count];
    BitsLinear bits_linear[bits_count][dtype_count];
    // Null: this CPU has no such instructions. They read x's rows in sixteens: the memory of those
    // beyond the last must be there.
    BitsLinear bits_linear_tiles[bits_count][dtype_count];
};

// The widest instruction set of this CPU, or the one that the environment variable TWINKLE_PACK_ISA
// names (portable, avx2, avx512, avx512vnni, avx512bf16, amx): std::runtime_error if this CPU or
// this build lacks it.
const RowFunctions& row_functions();

// Each sets the functions that it has; the rest stay those of the narrower ones.
void add_portable(RowFunctions& functions);
#ifdef TWINKLE_PACK_X86
void add_avx2(RowFunctions& functions);  // calls the next two
void add_avx2_products(RowFunctions& functions);
void add_avx2_images(RowFunctions& functions);
void add_avx512(RowFunctions& functions);  // calls the next two
void add_avx512_products(RowFunctions& functions);
void add_avx512_images(RowFunctions& functions);
void add_avx512_vnni(RowFunctions& functions);
void add_avx512_bf16(RowFunctions& functions);
void add_amx(RowFunctions& functions);
bool may_use_amx();
#endif

}  // namespace twinkle_pack
