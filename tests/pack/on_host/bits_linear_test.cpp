// The CUDA kernels of linear layers with packed weights, on the CPU: against sums in double.
#include "cuda/bits_linear.h"

#include "catch.h"
#include "cuda/fp8_share.h"
#include "cuda/fp8_ways.h"
#include "on_host.h"
#include "packed_layer.h"

using namespace twinkle_pack;
using namespace twinkle_pack::cuda;

namespace {

template <class T>
void check(Packing packing, size_t rows, size_t outputs, size_t depth, bool with_bias) {
    INFO("packing " << static_cast<int>(packing) << ", " << rows << " rows, " << outputs << " x "
                    << depth << ", " << sizeof(T) << " bytes");
    Packed<T> made(packing, rows, outputs, depth);
    REQUIRE(serves(made.layer(with_bias), 0));
    launch_packed(made.layer(with_bias), {nullptr, 0, nullptr, {}});
    CHECK(made.error(with_bias) < limit<T>);
    CHECK(to_float(made.y[rows * outputs]) == to_float(from_float<T>(12345)));
}

// Every border between kernels for more rows; passes of few and many tiles, half a tile, groups
// that warps and blocks share unevenly.
template <class T>
void check_many_rows(Packing packing) {
    for (const size_t rows : {65, 100, 128, 129, 192}) check<T>(packing, rows, 48, 320, true);
    check<T>(packing, 100, 16, 64, false);
    check<T>(packing, 70, 2128, 128, true);
    check<T>(packing, 190, 528, 448, true);
    check<T>(packing, 40, 8208, 192, true);
    check<T>(packing, 130, 4112, 128, true);
}

template <class T>
void check_sizes(Packing packing) {
    for (const size_t rows : {1, 8, 9, 17, 33, 64})
        if (packing != Packing::fp8 || rows <= 32) check<T>(packing, rows, 48, 320, rows % 2 == 0);
    for (const size_t rows : {1, 12, 30}) check<T>(packing, rows, 16, 64, false);
    if (packing != Packing::fp8 && !std::is_same_v<T, float>) check_many_rows<T>(packing);
    check<T>(packing, 5, 1104, 64, true);  // several clusters
    check<T>(packing, 3, 32, 2112, true);  // several groups for each warp
    // Depths that 128 divides.
    check<T>(packing, 7, 1104, 128, true);
    check<T>(packing, 8, 16, 384, false);
    check<T>(packing, 1, 48, 4352, true);
    check<T>(packing, 9, 48, 384, true);
    // One row: groups that come together, up to a tile's end or a warp's last.
    check<T>(packing, 1, 2128, 576, true);
    check<T>(packing, 1, 560, 1344, false);
    check<T>(packing, 1, 16, 33088, true);  // more than shared memory is used for
}

}  // namespace

TEST_CASE("linear layers with packed weights of all sizes are right") {
    for (const Packing packing : {Packing::int8, Packing::int4, Packing::fp8}) {
        check_sizes<float>(packing);
        check_sizes<BFloat16>(packing);
        check_sizes<Float16>(packing);
    }
}

TEST_CASE("linear layers with packed weights and many outputs are right") {
    for (const Packing packing : {Packing::int8, Packing::int4, Packing::fp8})
        check<BFloat16>(packing, 11, 9008, 64, true);
}

// Rows of numbers that rounding to fp8 keeps: one is the largest.
template <class T>
void check_fp8_products(size_t rows, size_t outputs, size_t depth, bool with_bias) {
    INFO(rows << " rows, " << outputs << " x " << depth << ", " << sizeof(T) << " bytes");
    Packed<T> made(Packing::fp8, rows, outputs, depth);
    std::mt19937 random(static_cast<unsigned>(depth));
    for (size_t i = 0; i < rows * depth; ++i) {
        auto bits = static_cast<uint8_t>(random());
        if ((bits & 127) == 127) bits = 0;
        made.x[i] =
            from_float<T>(i % depth == i / depth % depth ? fp8_largest : fp8_to_float(bits));
    }
    const PackedLayer layer = made.layer(with_bias);
    REQUIRE(fp8_products_serve(layer, 0));
    Elements<uint8_t> workspace(static_cast<size_t>(fp8_workspace(layer)));
    launch_fp8_products(layer, {nullptr, 0, workspace.data(), {}});
    CHECK(made.error(with_bias) < 100 * limit<T>);  // x is about a hundred times as large
    CHECK(to_float(made.y[rows * outputs]) == to_float(from_float<T>(12345)));
}

TEST_CASE("rows and weights of fp8 are multiplied right") {
    check_fp8_products<BFloat16>(33, 48, 320, true);
    check_fp8_products<BFloat16>(64, 16, 64, false);
    check_fp8_products<BFloat16>(100, 208, 1088, true);  // clusters that share the depth unevenly
    check_fp8_products<BFloat16>(200, 144, 1024, false);
    check_fp8_products<float>(70, 1056, 128, true);
    check_fp8_products<float>(290, 112, 192, true);  // several tiles of rows
    check_fp8_products<Float16>(129, 64, 448, true);
}

TEST_CASE("clusters share as many rows of fp8 as there may be") {
    using Shape = Fp8Shape<4, 32>;
    Fp8Arguments a{};
    a.rows = (1 << 27) - 1;
    a.outputs = 16;
    a.depth = 64;
    a.row_tiles = (a.rows + Shape::rows - 1) / Shape::rows;
    uint32_t next = 0;
    for (blockIdx.x = 0; blockIdx.x < a.row_tiles; ++blockIdx.x) {
        const Fp8Share<Shape> share(a, 0);
        if (share.first_row != next || share.rows > Shape::rows) break;
        next += share.rows;
    }
    CHECK(next == a.rows);
    blockIdx.x = 0;
}

TEST_CASE("products of fp8 that LibTorch is faster with are left to it") {
    const auto served = [](DType dtype, int64_t rows, int64_t outputs, int64_t depth) {
        return fp8_products_serve({Packing::fp8, dtype, nullptr, nullptr, nullptr, nullptr, nullptr,
                                   rows, outputs, depth},
                                  0);
    };
    CHECK(served(DType::bfloat16, 64, 18944, 3584));
    CHECK(!served(DType::bfloat16, 65, 18944, 3584));
    CHECK(served(DType::bfloat16, 128, 3584, 3584));
    CHECK(served(DType::bfloat16, 192, 3584, 3584));
    CHECK(!served(DType::bfloat16, 193, 3584, 3584));
    CHECK(served(DType::bfloat16, 256, 3584, 18944));
    CHECK(served(DType::bfloat16, 512, 512, 3584));
    CHECK(!served(DType::bfloat16, 513, 512, 3584));
    CHECK(served(DType::float16, 4096, 18944, 3584));
    CHECK(!served(DType::float16, 4096, 18936, 3584));
}

TEST_CASE("many rows of bfloat16 are multiplied by rounded weights") {
    for (const Packing packing : {Packing::int8, Packing::int4}) {
        check<BFloat16>(packing, 40, 1040, 320, true);
        check<BFloat16>(packing, 130, 1104, 320, false);
        check<BFloat16>(packing, 300, 1040, 64, true);
        check<BFloat16>(packing, 193, 16, 192, true);
    }
}

TEST_CASE("what kernels for packed weights do not serve is said") {
    Packed<BFloat16> made(Packing::int8, 4, 32, 128);
    PackedLayer layer = made.layer(false);
    CHECK(serves(layer, 0));
    layer.outputs = 24;
    CHECK(!serves(layer, 0));
    layer.outputs = 32;
    layer.rows = 384;
    CHECK(serves(layer, 0));
    layer.rows = 385;
    CHECK(!serves(layer, 0));
    layer.rows = 512;
    layer.outputs = 8208;
    CHECK(serves(layer, 0));
    layer.rows = 513;
    CHECK(!serves(layer, 0));
    layer.outputs = 32;
    layer.packing = Packing::fp8;
    layer.rows = 33;
    CHECK(!serves(layer, 0));
    layer.packing = Packing::int8;
    layer.rows = 0;
    CHECK(!serves(layer, 0));
    layer.rows = 4;
    layer.x = made.x.data() + 1;
    CHECK(!serves(layer, 0));
}
