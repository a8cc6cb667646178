// Weights of convolutions that are laid out once: the same results as from PyTorch's layout.
#include "conv_call.h"

using namespace pack;
using namespace pack::conv;

namespace {

// As the pack's Python code has it.
Tensor plain(const Tensor& packed) {
    return packed.permute({1, 5, 0, 4, 6, 2, 3})
        .reshape({packed.size(1) * packed.size(5), -1, packed.size(2), packed.size(3)});
}

Call channels_last_call(const Shape& shape, at::ScalarType dtype, int extras) {
    Call call = call_of(shape, dtype, extras);
    call.x = last(call.x);
    call.channels_last = true;
    return call;
}

}  // namespace

TEST_CASE("prepacked weights hold the same numbers, and give the same results", "[isa][cpu]") {
    at::manual_seed(51);
    const Shape shapes[] = {
        square({2, 8, 9, 7}, 16, 3, 1, 1),    // one slab
        square({1, 24, 12, 12}, 48, 1),       // pixels by themselves
        square({2, 480, 5, 6}, 32, 3, 2, 1),  // slabs of one size
        square({1, 960, 7, 7}, 160, 1),       // … that no vector divides
        square({1, 300, 4, 5}, 80, 3, 1, 2),    square({1, 16, 13, 11}, 32, 5, 2, 2, 2),
        square({1, 16, 30, 30}, 16, 23, 1, 11),  // nearly as many taps as a slab may have
        square({2, 128, 28, 28}, 128, 3, 1, 1),  // by fewer products (winograd.h), in float32
    };
    for (const auto& dtype : served_last())
        for (const Shape& shape : shapes)
            for (const int extras : {0, 1, 7}) {
                const Call call = channels_last_call(shape, dtype, extras);
                const Tensor packed = prepacked(call.weight);
                REQUIRE(packed.defined());
                CHECK(packed.is_contiguous());
                CHECK(at::equal(plain(packed), call.weight));
                for (const auto& activation : activations) {
                    const Tensor result = with_weight(call, packed).run(activation);
                    REQUIRE(result.defined());
                    // Tiles of bfloat16 add up in another order.
                    if (dtype == at::kFloat)
                        CHECK(at::equal(result, call.run(activation)));
                    else
                        check_right(call, activation, result);
                }
            }
}

TEST_CASE("prepacked weights: x may lie as it likes", "[isa][cpu]") {
    at::manual_seed(52);
    for (const auto& dtype : served_last()) {
        Call call = channels_last_call(square({2, 32, 10, 9}, 32, 3, 1, 1), dtype, 1);
        const Tensor packed = prepacked(call.weight);
        const Tensor wanted = with_weight(call, packed).run(activations[1]);
        check_right(call, activations[1], wanted);
        call.x = call.x.contiguous();
        CHECK(at::equal(with_weight(call, packed).run(activations[1]), wanted));
        // Without a word about the layout the result of a plain x is a plain one, which needs
        // PyTorch's weight; that of an x with its channels last is not.
        call.channels_last = false;
        CHECK_FALSE(with_weight(call, packed).run(activations[1]).defined());
        call.x = last(call.x);
        CHECK(at::equal(with_weight(call, packed).run(activations[1]), wanted));
    }
}

TEST_CASE("weights that are not prepacked", "[isa][cpu]") {
    for (const auto& dtype : served_last()) {
        const auto weight = [&](std::vector<int64_t> sizes) { return random(sizes, dtype, 1); };
        REQUIRE(prepacked(weight({16, 8, 3, 3})).defined());
        CHECK_FALSE(prepacked(weight({16, 8, 3, 3}), 2).defined());         // groups
        CHECK_FALSE(prepacked(weight({16, 8, 3, 3}), 1, false).defined());  // layout
        CHECK_FALSE(prepacked(weight({24, 8, 3, 3})).defined());            // no whole block
        CHECK_FALSE(prepacked(weight({16, 3, 7, 7})).defined());            // x is copied
        CHECK_FALSE(prepacked(weight({16, 8, 25, 25})).defined());          // too many taps
        CHECK_FALSE(prepacked(weight({16, 8, 1, 65})).defined());           // too wide
        CHECK_FALSE(prepacked(weight({16, 2 * 313, 1, 1})).defined());      // slabs that differ
        CHECK_FALSE(prepacked(weight({16, 8, 3})).defined());
        CHECK_FALSE(prepacked(weight({0, 8, 3, 3})).defined());
        CHECK_FALSE(prepacked(weight({16, 0, 3, 3})).defined());
        CHECK_FALSE(prepacked(last(weight({16, 8, 3, 3}))).defined());
        CHECK_FALSE(prepacked(weight({32, 8, 3, 3}).slice(0, 0, 32, 2)).defined());
        CHECK_FALSE(prepacked(weight({16, 8, 3, 3}).to(at::kDouble)).defined());
        CHECK_FALSE(prepacked(weight({16, 8, 3, 3}).to(at::kInt)).defined());
    }
}

// A file may hold anything in the place of such a weight.
TEST_CASE("tensors that are no prepacked weight are left to LibTorch", "[isa][cpu]") {
    for (const auto& dtype : served_last()) {
        const Call call = channels_last_call(square({1, 32, 9, 9}, 32, 3, 1, 1), dtype, 0);
        const Tensor packed = prepacked(call.weight);
        const auto declined = [&](const Tensor& weight) {
            return !with_weight(call, weight).run(activations[0]).defined();
        };
        REQUIRE_FALSE(declined(packed));
        for (int64_t d = 0; d < packed.dim(); ++d) {
            CHECK(declined(packed.narrow(d, 0, 0)));
            if (d == 1) continue;  // fewer channels of the result
            if (packed.size(d) > 1) CHECK(declined(packed.narrow(d, 0, 1)));
            if (d != 2 && d != 3) CHECK(declined(packed.repeat_interleave(2, d)));
        }
        CHECK(declined(packed.transpose(1, 4)));
        CHECK(declined(packed.unsqueeze(0)));
        CHECK(declined(packed.flatten()));
        CHECK(declined(packed.to(at::kDouble)));
        // Not where vectors begin.
        const Tensor moved = at::empty({packed.numel() + 1}, packed.options()).slice(0, 1);
        CHECK(declined(moved.view(packed.sizes()).copy_(packed)));
        // For another number of channels, or groups of them.
        Call other = call;
        other.x = last(random({1, 64, 9, 9}, dtype, 1));
        CHECK_FALSE(with_weight(other, packed).run(activations[0]).defined());
        other.shape.groups = 2;
        CHECK_FALSE(with_weight(other, packed).run(activations[0]).defined());
    }
}
