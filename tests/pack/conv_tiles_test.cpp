// Convolutions with prepacked weights of whole tiles of channels, which AMX multiplies, and every
// other instruction set in its own way: all that decides which positions a tile has.
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
    {{2, 32, 9, 11}, 48, 1, 3, 2, 1, 0, 2, 1, 2, 1},
    {{1, 64, 8, 20}, 32, 5, 2, 1, 3, 2, 0, 2, 1, 1},
};

}  // namespace

TEST_CASE("prepacked convolutions of whole tiles are right", "[isa][cpu]") {
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

TEST_CASE("prepacked convolutions of whole tiles: activations", "[isa][cpu]") {
    at::manual_seed(72);
    for (const auto dtype : served())
        for (const Activation& activation : activations)
            for (const int extras : {2, 5})
                check(call_last(square({2, 64, 6, 7}, 48, 3, 1, 1), dtype, extras), activation);
}

TEST_CASE("prepacked convolutions of whole tiles: any number of threads, and any x", "[isa][cpu]") {
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

TEST_CASE("prepacked convolutions of whole tiles: what is no number stays where it is seen",
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
