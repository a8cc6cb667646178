// Every launch of products with packed weights, on the CPU: against sums in double.
#include <initializer_list>

#include "catch.h"
#include "cuda/bits_product_launch.h"
#include "on_host.h"
#include "packed_layer.h"

using namespace twinkle_pack;
using namespace twinkle_pack::cuda;

namespace {

// In clusters of so many blocks, given by the bits of powers of two.
template <class W, int across, int teams, int groups>
void check(Packing packing, size_t rows, size_t outputs, size_t depth,
           std::initializer_list<uint32_t> clusters) {
    Packed<BFloat16> made(packing, rows, outputs, depth);
    for (const uint32_t bits : clusters) {
        INFO(rows << " rows, " << outputs << " x " << depth << ", " << across << " tiles, " << teams
                  << " teams, clusters of " << (1 << bits));
        for (size_t i = 0; i < rows * outputs; ++i) made.y[i] = from_float<BFloat16>(12345);
        launch_products_in<BFloat16, ProductShape<W, across, teams, groups>>(
            bits, BitsArguments::of(made.layer(true)), card(0), nullptr);
        CHECK(made.error(true) < limit<BFloat16>);
        CHECK(to_float(made.y[rows * outputs]) == to_float(from_float<BFloat16>(12345)));
    }
}

// A part of a tile of rows and of outputs, with blocks that have no group; several of both, and
// groups that neither a step nor a cluster divides; more steps than stages.
template <class W, int across, int teams, int groups>
void check_shape(Packing packing) {
    check<W, across, teams, groups>(packing, 40, 48, 320, {3});
    check<W, across, teams, groups>(packing, across * 8 + 9, 64 * teams + 16, 192, {1});
    check<W, across, teams, groups>(packing, 33, 16, 64 * 17, {0});
}

template <class W>
void check_shapes(Packing packing) {
    check_shape<W, 8, 2, 2>(packing);
    check_shape<W, 8, 3, 2>(packing);
    check_shape<W, 16, 2, 2>(packing);
    check_shape<W, 16, 3, 2>(packing);
    check_shape<W, 24, 2, 1>(packing);
    check_shape<W, 24, 3, 1>(packing);
    check_shape<W, 32, 2, 1>(packing);
}

}  // namespace

TEST_CASE("products with packed weights are right in every launch") {
    SECTION("int8") {
        check_shapes<Int8Weights>(Packing::int8);
    }
    SECTION("int4") {
        check_shapes<Int4Weights>(Packing::int4);
    }
}
