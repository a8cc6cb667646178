// Convolutions with prepacked weights, and of few channels, which AMX multiplies in tiles, and
// every other instruction set in its own way: all that decides which positions and channels a tile
// has.
#include "conv_call.h"

using namespace pack;
using namespace pack::conv;

namespace {

// What this instruction set lays out.
std::vector<at::ScalarType> served() {
    std::vector<at::ScalarType> all;
    for (const auto dtype : {at::kFloat, at::kBFloat16})
        if (prepacked(at::ones({16, 32, 1, 1}, dtype)).defined()) all.push_back(dtype);
    return all;
}

Call call_last(const Shape& shape, at::ScalarType dtype, int extras) {
    Call call = call_of(shape, dtype, extras);
    call.x = last(call.x);
    call.channels_last = true;
    return call;
}

void check(const Call& call, const Activation& activation) {
    const Tensor packed = prepacked(call.weight);
    INFO(call.x.sizes() << " " << call.weight.sizes());
    REQUIRE(packed.defined());
    check_right(call, activation, with_weight(call, packed).run(activation));
}

const Shape shapes[] = {
    square({1, 32, 1, 1}, 16, 1),        // one position
    square({3, 32, 1, 5}, 48, 1),        // fewer than a tile has; a block that is alone
    square({2, 64, 4, 4}, 32, 1),        // two tiles
    square({2, 64, 7, 7}, 32, 3, 1, 1),  // a last tile that begins before the others end
    square({2, 32, 5, 3}, 80, 3, 1, 1),
    square({1, 32, 3, 3}, 16, 3),             // one pixel that sees all
    square({2, 96, 15, 14}, 48, 3, 2, 1),     // every second pixel
    square({2, 64, 9, 9}, 32, 1, 2),          // … of which one phase is seen
    square({1, 32, 17, 16}, 64, 2, 5, 1),     // strides beyond the kernel
    square({1, 32, 12, 13}, 32, 3, 3, 2, 2),  // dilation
    square({1, 32, 4, 4}, 16, 2, 1, 5),       // padding beyond the kernel
    square({1, 512, 6, 6}, 64, 3, 1, 1),      // several slabs
    square({1, 1024, 5, 5}, 32, 1),
    square({2, 24, 9, 7}, 32, 1),        // tiles of fewer channels
    square({1, 8, 6, 6}, 16, 3, 1, 1),   // … of as few as there are
    square({1, 40, 8, 5}, 48, 3, 2, 1),  // … of half of them
    square({1, 144, 6, 7}, 32, 1),
    square({1, 136, 5, 5}, 32, 1),
    square({1, 160, 6, 5}, 32, 3, 1, 1),  // slabs of less than they could have
    square({1, 368, 4, 4}, 16, 1),
    {{2, 32, 9, 11}, 48, 1, 3, 2, 1, 0, 2, 1, 2, 1},
    {{1, 64, 8, 20}, 32, 5, 2, 1, 3, 2, 0, 2, 1, 1},
};

// Rows of the kernel are the depth of a tile then.
const Shape few_channels[] = {
    square({2, 3, 23, 21}, 64, 7, 2, 3),  // as in ResNet
    square({1, 3, 33, 32}, 48, 4, 4),     // patches
    square({2, 3, 34, 36}, 32, 16, 16),   // … of several tiles a row
    square({1, 1, 12, 13}, 16, 5, 1, 2),
    square({2, 2, 9, 11}, 32, 3, 3, 1),
    square({1, 5, 10, 9}, 16, 3, 1, 1),               // a group that is completed
    square({1, 7, 3, 3}, 32, 3),                      // one pixel that sees all
    square({1, 3, 8, 8}, 16, 2, 5, 1),                // strides beyond the kernel
    square({1, 4, 5, 5}, 16, 3, 1, 6),                // padding beyond the image
    {{2, 3, 14, 19}, 32, 3, 5, 2, 1, 0, 2, 2, 1, 1},  // rows with gaps
    {{1, 3, 19, 14}, 80, 5, 3, 1, 3, 2, 1, 1, 1, 1},
    {{1, 3, 19, 14}, 80, 3, 3, 1, 1, 1, 1, 1, 2, 1},  // columns with gaps: no rows
};

}  // namespace

TEST_CASE("convolutions of few channels are right", "[isa][cpu]") {
    at::manual_seed(76);
    const auto threads = at::get_num_threads();
    for (const auto dtype : served_last())
        for (const Shape& shape : few_channels)
            for (const int extras : {0, 1, 7}) {
                Call call = call_of(shape, dtype, extras);
                call.channels_last = true;
                INFO(call.x.sizes() << " " << call.weight.sizes());
                const Tensor result = call.run(activations[extras % 3]);
                check_right(call, activations[extras % 3], result);
                for (const int count : {1, 5}) {
                    at::set_num_threads(count);
                    CHECK(at::equal(call.run(activations[extras % 3]), result));
                }
                at::set_num_threads(threads);
                call.x = last(call.x);
                CHECK(at::equal(call.run(activations[extras % 3]), result));
            }
}

TEST_CASE("few channels: what is no number stays where it is seen", "[isa][cpu]") {
    at::manual_seed(77);
    for (const auto dtype : served_last())
        for (const Shape& shape :
             {square({2, 3, 23, 21}, 64, 7, 2, 3), square({1, 3, 9, 9}, 16, 3)})
            for (const double value : {NAN, INFINITY}) {
                Call call = call_of(shape, dtype, 0);
                call.channels_last = true;
                const Tensor clean = call.run(activations[0]);
                call.x.select(0, 0).select(1, 4).select(1, 6).fill_(value);
                const Tensor wanted =
                    call.as(at::kDouble).original(activations[0]).isfinite().logical_not();
                const Tensor result = call.run(activations[0]);
                CHECK(at::equal(result.isfinite().logical_not(), wanted));
                CHECK(at::equal(result.masked_fill(wanted, 0), clean.masked_fill(wanted, 0)));
            }
}

// Laid out in the call, where the result's channels are no whole vectors.
TEST_CASE("plain weights of convolutions in tiles are right", "[isa][cpu]") {
    at::manual_seed(78);
    const auto threads = at::get_num_threads();
    for (const auto dtype : served_last())
        for (const Shape& shape :
             {square({2, 144, 9, 9}, 24, 1), square({1, 64, 12, 12}, 40, 3, 1, 1),
              square({1, 32, 20, 20}, 17, 1), square({3, 24, 8, 8}, 30, 3, 2, 1),
              square({1, 48, 3, 3}, 24, 3, 1, 1), square({1, 72, 16, 15}, 56, 1)})
            for (const int extras : {0, 7}) {
                Call call = call_last(shape, dtype, extras);
                INFO(call.x.sizes() << " " << call.weight.sizes());
                const Tensor result = call.run(activations[2]);
                if (!result.defined()) {  // LibTorch's, where AMX is chosen by itself
                    CHECK((dtype == at::kBFloat16 && shape.x[1] % 32 == 0));
                    continue;
                }
                check_right(call, activations[2], result);
                call.residual_last = true;
                check_right(call, activations[extras % 6], call.run(activations[extras % 6]));
                call.residual_last = false;
                for (const int count : {1, 5}) {
                    at::set_num_threads(count);
                    CHECK(at::equal(call.run(activations[2]), result));
                }
                at::set_num_threads(threads);
                call.weight = last(call.weight);
                const Tensor same = call.run(activations[2]);
                CHECK((!same.defined() || at::equal(same, result)));
            }
}

TEST_CASE("prepacked convolutions in tiles are right", "[isa][cpu]") {
    at::manual_seed(71);
    for (const auto dtype : served())
        for (const Shape& shape : shapes)
            for (const int extras : {0, 1, 7}) {
                Call call = call_last(shape, dtype, extras);
                check(call, activations[extras % 3]);
                call.residual_last = true;
                if (extras == 7) check(call, activations[1]);
            }
}

TEST_CASE("prepacked convolutions in tiles: activations", "[isa][cpu]") {
    at::manual_seed(72);
    for (const auto dtype : served())
        for (const Activation& activation : activations)
            for (const int extras : {2, 5})
                check(call_last(square({2, 64, 6, 7}, 48, 3, 1, 1), dtype, extras), activation);
}

TEST_CASE("prepacked convolutions in tiles: any number of threads, and any x", "[isa][cpu]") {
    at::manual_seed(73);
    const auto threads = at::get_num_threads();
    for (const auto dtype : served())
        for (const Shape& shape :
             {square({3, 64, 20, 18}, 160, 3, 1, 1), square({1, 256, 9, 7}, 512, 1),
              square({2, 32, 33, 9}, 48, 3, 2)}) {
            Call call = with_weight(call_last(shape, dtype, 1), {});
            const Tensor weight = call_of(shape, dtype, 0).weight;
            call.weight = prepacked(weight);
            const Tensor result = call.run(activations[3]);
            check_right(with_weight(call, weight), activations[3], result);
            for (const int count : {1, 5}) {
                at::set_num_threads(count);
                CHECK(at::equal(call.run(activations[3]), result));
            }
            at::set_num_threads(threads);
            // Not where lines of the cache begin.
            const Tensor memory = at::empty({call.x.numel() + 3}, call.x.options()).slice(0, 3);
            const Tensor moved = memory.as_strided(call.x.sizes(), call.x.strides()).copy_(call.x);
            Call other = call;
            other.x = moved;
            CHECK(at::equal(other.run(activations[3]), result));
            other.x = call.x.contiguous();
            CHECK(at::equal(other.run(activations[3]), result));
            // Some channels of more, and every second column.
            const Tensor more = last(at::cat({call.x, call.x}, 1));
            other.x = more.slice(1, 0, call.x.size(1));
            CHECK(at::equal(other.run(activations[3]), result));
            other.x = last(call.x.repeat_interleave(2, 3)).slice(3, 0, 2 * call.x.size(3), 2);
            CHECK(at::equal(other.run(activations[3]), result));
        }
}

TEST_CASE("prepacked convolutions in tiles: what is no number stays where it is seen",
          "[isa][cpu]") {
    at::manual_seed(74);
    for (const auto dtype : served())
        for (const Shape& shape :
             {square({2, 32, 6, 8}, 32, 3, 1, 1), square({2, 32, 9, 8}, 32, 3, 2, 1),
              square({2, 32, 7, 5}, 16, 1)}) {
            Call call = call_last(shape, dtype, 0);
            const Tensor clean = with_weight(call, prepacked(call.weight)).run(activations[0]);
            call.x.select(0, 1).select(1, 2).select(1, 4).fill_(NAN);
            const Tensor wanted = call.as(at::kDouble).original(activations[0]).isnan();
            const Tensor result = with_weight(call, prepacked(call.weight)).run(activations[0]);
            CHECK(at::equal(result.isnan(), wanted));
            CHECK(at::equal(result.masked_fill(wanted, 0), clean.masked_fill(wanted, 0)));
        }
}

// It would be many times as large as x and the result together.
TEST_CASE("prepacked convolutions of which a copy of x would be too large", "[isa][cpu]") {
    at::manual_seed(75);
    for (const auto dtype : served()) {
        const Call call = call_last(square({1, 32, 3, 3}, 16, 1, 64, 600), dtype, 0);
        const Tensor result = with_weight(call, prepacked(call.weight)).run(activations[0]);
        if (result.defined()) check_right(call, activations[0], result);
    }
}
