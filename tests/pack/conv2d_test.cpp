// Convolutions of two dimensions with what follows them, in every instruction set that has them.
#include "conv_call.h"

#include <limits>

namespace {

using namespace pack;
using namespace pack::conv;

// Sizes around those of vectors, panels, tiles and blocks of the depth and of channels.
const std::vector<Shape> shapes{
    square({1, 3, 33, 41}, 20, 7, 2, 3),
    square({2, 9, 7, 7}, 30, 3, 1, 1),
    square({1, 70, 7, 7}, 13, 1),
    square({3, 5, 1, 1}, 7, 1),
    square({2, 40, 14, 14}, 50, 3, 2, 1),
    square({1, 300, 6, 6}, 270, 1),
    square({1, 300, 9, 9}, 300, 1, 2),
    square({1, 130, 10, 10}, 12, 3, 1, 1),
    square({1, 8, 28, 28}, 25, 1),
    square({2, 6, 9, 9}, 12, 3, 1, 2, 2),
    square({1, 2, 4, 600}, 3, 3, 1, 1),    // a row is more than a piece
    square({1, 3, 40, 40}, 11, 20, 20),    // more taps than fit a block
    square({1, 9, 26, 26}, 5, 25),         // … or a slab
    square({1, 70, 24, 23}, 70, 3, 1, 1),  // several slabs, groups and blocks of pixels
    square({1, 150, 13, 12}, 270, 1),
    square({2, 8, 12, 12}, 24, 3, 1, 1, 1, 4),  // groups
    square({1, 64, 7, 6}, 20, 3, 1, 1, 1, 2),
    square({2, 20, 17, 19}, 20, 3, 1, 1, 1, 20),
    square({1, 40, 15, 29}, 40, 3, 2, 1, 1, 40),
    square({1, 6, 16, 35}, 18, 5, 2, 2, 1, 6),  // two results of each channel
    square({2, 5, 20, 20}, 5, 7, 1, 3, 2, 5),
    {{1, 7, 31, 30}, 9, 3, 5, 2, 1, 0, 4, 1, 3, 1},
};

}  // namespace

TEST_CASE("convolutions are right for every dtype, stride, padding, dilation and groups",
          "[isa][cpu]") {
    at::manual_seed(21);
    for (auto dtype : served_dtypes())
        for (const Shape& shape : shapes)
            for (const int extras : {0, 1})
                check_right(call_of(shape, dtype, extras), activations[0]);
}

TEST_CASE("normalization, residual and activation of convolutions are right", "[isa][cpu]") {
    at::manual_seed(22);
    for (auto dtype : served_dtypes())
        for (const Shape& shape : {square({2, 12, 7, 9}, 30, 3, 1, 1), square({1, 70, 6, 3}, 9, 1),
                                   square({2, 9, 11, 20}, 9, 3, 1, 1, 1, 9)})
            for (const Activation& activation : activations)
                for (const int extras : {2, 4, 7}) {
                    Call call = call_of(shape, dtype, extras);
                    check_right(call, activation);
                    call.residual_last = true;
                    if (extras & 4) check_right(call, activation);
                }
}

TEST_CASE("statistics of float32 normalize convolutions of half precision", "[isa][cpu]") {
    at::manual_seed(23);
    for (auto dtype : served_dtypes()) {
        Call call = call_of(square({1, 8, 9, 9}, 16, 3), dtype, 3);
        for (Tensor* one : {&call.mean, &call.variance, &call.gain, &call.offset})
            *one = one->to(at::kFloat);
        check_right(call, activations[1]);
        call.gain = call.offset = Tensor();
        check_right(call, activations[1]);
    }
}

TEST_CASE("convolutions of parts of tensors", "[isa][cpu]") {
    at::manual_seed(24);
    for (auto dtype : served_dtypes())
        for (const Shape& shape : {square({2, 6, 9, 10}, 20, 1), square({2, 6, 9, 10}, 20, 3, 1, 1),
                                   square({2, 6, 9, 10}, 6, 3, 2, 1, 1, 6)}) {
            Call call = call_of(shape, dtype, 4);
            call.residual = at::cat({call.residual, call.residual}, 1).chunk(2, 1)[1];
            const Tensor wide = random({4, 18, 12, 17}, dtype, 1);
            call.x = wide.slice(0, 0, 4, 2).slice(1, 1, 7).slice(2, 3).slice(3, 2, 12);
            check_right(call, activations[1]);
            call.x = wide.slice(1, 0, 18, 3).slice(0, 2).slice(2, 0, 9).slice(3, 0, 10);
            check_right(call, activations[1]);
        }
}

TEST_CASE("convolutions of images whose channels lie last", "[isa][cpu]") {
    at::manual_seed(28);
    for (const auto& [dtype, shape] : each_with_each(served_last(), shapes)) {
        // Several results of each channel: LibTorch's. bfloat16 is multiplied in pairs of channels.
        if (shape.groups == shape.x[1] && shape.out_channels != shape.groups) continue;
        const int64_t channels = shape.x[1] / shape.groups;
        if (dtype == at::kBFloat16 && channels % 2 != 0 && channels > 1) continue;
        if (shape.groups > 1 && channels > 1 && channels < 32) continue;  // LibTorch's, too
        for (const int extras : {0, 5}) {
            const Call plain = call_of(shape, dtype, extras);
            Call call = plain;
            call.channels_last = true;
            check_right(call, activations[1]);
            call.x = last(plain.x);
            check_right(call, activations[0]);
            if (extras & 4) call.residual = last(plain.residual);
            check_right(call, activations[0]);
            if (shape.x[1] == shape.groups || shape.groups == 1) call.weight = last(plain.weight);
            check_right(call, activations[2]);
        }
    }
}

TEST_CASE("channels last: normalization, residual and activation", "[isa][cpu]") {
    at::manual_seed(29);
    const std::vector<Shape> some{square({2, 12, 7, 9}, 30, 3, 1, 1), square({1, 70, 6, 3}, 90, 1),
                                  square({2, 200, 9, 9}, 300, 3, 1, 1),
                                  square({2, 19, 11, 20}, 19, 3, 1, 1, 1, 19)};
    for (const auto& [dtype, shape] : each_with_each(served_last(), some))
        for (const Activation& activation : activations)
            for (const int extras : {2, 4, 7}) {
                Call call = call_of(shape, dtype, extras);
                call.x = last(call.x);
                check_right(call, activation);
                call.residual_last = true;
                if (extras & 4) check_right(call, activation);
            }
}

TEST_CASE("channels last: parts of tensors", "[isa][cpu]") {
    at::manual_seed(30);
    const std::vector<Shape> some{
        square({2, 10, 9, 10}, 20, 1), square({2, 10, 9, 10}, 20, 3, 1, 1),
        square({2, 10, 9, 10}, 10, 3, 2, 1, 1, 10), square({2, 3, 9, 10}, 20, 3, 1, 1)};
    for (const auto& [dtype, shape] : each_with_each(served_last(), some)) {
        Call call = call_of(shape, dtype, 4);
        call.channels_last = true;
        call.residual = last(at::cat({call.residual, call.residual}, 1)).chunk(2, 1)[1];
        const Tensor wide = last(random({4, 24, 12, 17}, dtype, 1));
        call.x = wide.slice(0, 0, 4, 2).slice(1, 1, 1 + shape.x[1]).slice(2, 3).slice(3, 2, 12);
        check_right(call, activations[1]);
        // A residual that is part of an image in the other directions is LibTorch's.
        const Tensor larger = last(random({2, 20, 12, 17}, dtype, 1));
        const auto sizes = call.residual.sizes();
        call.residual = larger.slice(1, 0, sizes[1]).slice(2, 0, sizes[2]).slice(3, 0, sizes[3]);
        CHECK(!call.run(activations[1]).defined());
    }
}

// Groups of bfloat16 are read whole: with an odd number of channels not beyond what is x's.
TEST_CASE("channels last: bfloat16 with an odd number of channels", "[isa][cpu]") {
    at::manual_seed(36);
    if (!has_last(at::kBFloat16)) return;
    Call call = call_of(square({2, 9, 7, 8}, 20, 3, 1, 1), at::kBFloat16, 1);
    call.channels_last = true;
    const Tensor result = call.run(activations[1]);  // as the plain loops give it
    CHECK(result.is_contiguous());
    call.x = last(call.x);
    CHECK(!call.run(activations[1]).defined());
    for (const int64_t channels : {1, 3, 5, 7}) {  // what a pixel sees is copied
        call = call_of(square({2, channels, 17, 19}, 20, 3, 2, 1), at::kBFloat16, 5);
        call.channels_last = true;
        check_right(call, activations[3]);
    }
}

TEST_CASE("who asks for channels last does not get them always", "[cpu]") {
    at::manual_seed(31);
    if (!is_served(at::kFloat)) return;
    // float16 has no such loops, nor have several results of each channel.
    Call call = call_of(square({1, 6, 16, 20}, 18, 5, 2, 2, 1, 6), at::kFloat, 1);
    call.channels_last = true;
    CHECK(call.run(activations[0]).is_contiguous());
    call = call_of(square({1, 6, 8, 8}, 9, 3), at::kHalf, 1);
    call.channels_last = true;
    CHECK(call.run(activations[0]).is_contiguous());
    call = call_of(square({1, 6, 8, 8}, 9, 3), at::kFloat, 1);
    call.channels_last = true;
    call.x = call.x.slice(0, 0, 0);
    CHECK(call.run(activations[0]).sizes() == at::IntArrayRef({0, 9, 6, 6}));
}

TEST_CASE("convolutions are right however many threads there are", "[isa][cpu]") {
    at::manual_seed(32);
    const int threads = at::get_num_threads();
    // Work for several threads: few pixels and many channels, the other way round, and rows that
    // are wider than a block.
    for (const Shape& shape :
         {square({1, 160, 7, 7}, 170, 3, 1, 1), square({1, 64, 14, 14}, 64, 1),
          square({1, 96, 19, 18}, 80, 3, 1, 1), square({2, 24, 40, 23}, 40, 3, 1, 1),
          square({2, 32, 29, 30}, 24, 3, 1, 1), square({1, 8, 3, 700}, 30, 3, 1, 1),
          square({1, 64, 14, 14}, 96, 3, 1, 1, 1, 2), square({1, 300, 7, 7}, 300, 3, 1, 1, 1, 300)})
        for (const auto dtype : served_dtypes())
            for (const bool is_last : {false, true}) {
                Call call = call_of(shape, dtype, 7);
                call.channels_last = is_last && has_last(dtype) && shape.x[1] % 2 == 0;
                at::set_num_threads(1);
                const Tensor alone = call.run(activations[1]);
                for (const int some : {2, 3, 7, 16}) {
                    at::set_num_threads(some);
                    INFO(some << " threads");
                    check_right(call, activations[1]);
                    // Where channels lie last each sum has its order.
                    if (call.channels_last) CHECK(at::equal(call.run(activations[1]), alone));
                }
            }
    at::set_num_threads(threads);
}

TEST_CASE("what is no number stays where it is seen", "[isa][cpu]") {
    at::manual_seed(25);
    if (!is_served(at::kFloat)) return;
    struct Case {
        int64_t channels, groups;
        bool channels_last;
    };
    for (const auto& [channels, groups, channels_last] :
         {Case{16, 1, false}, {16, 16, false}, {16, 1, true}, {16, 16, true}, {3, 1, true}})
        for (const auto dtype : served_dtypes()) {
            const auto shape = square({1, channels, 20, 20}, 16, 3, 1, 1, 1, groups);
            Call call = call_of(shape, dtype, 1);
            call.x[0][channels / 3][10][10] = std::nan("");
            call.channels_last = channels_last && has_last(dtype);
            for (const Activation& activation : activations) {
                const Tensor result = call.run(activation), original = call.original(activation);
                INFO(at::toString(dtype) << ", " << channels << " channels");
                CHECK(at::equal(result.isnan(), original.isnan()));
                CHECK(result.isnan().any().item<bool>());
            }
        }
}

TEST_CASE("3 x 3 pixels by fewer products", "[isa][cpu]") {
    at::manual_seed(34);
    if (!is_served(at::kFloat)) return;
    for (const Shape& shape :
         {square({1, 16, 30, 61}, 33, 3, 1, 1), square({3, 21, 33, 35}, 37, 3, 1, 1),
          square({1, 8, 120, 101}, 10, 3, 1, 1), square({1, 160, 14, 14}, 81, 3, 1, 0),
          square({2, 300, 9, 8}, 70, 3, 1, 2), square({1, 33, 1, 300}, 130, 3, 1, 1),
          square({40, 32, 7, 7}, 40, 3, 1, 0),
          square({1, 8, 1, 40000}, 16, 3, 1, 1)})  // rows too wide to be kept
        for (const int extras : {0, 7}) {
            Call call = call_of(shape, at::kFloat, extras);
            call.channels_last = true;
            for (const Activation& activation : {activations[0], activations[1], activations[3]})
                check_right(call, activation);
            if (extras == 0) continue;
            call.residual_last = true;
            check_right(call, activations[3]);
            call.weight = last(call.weight);
            call.x = last(call.x);
            check_right(call, activations[1]);
        }
}

// Differences of what is large, or no number, would be no numbers where the convolution has some.
TEST_CASE("3 x 3 pixels: what no difference can be made of", "[isa][cpu]") {
    at::manual_seed(35);
    if (!is_served(at::kFloat)) return;
    const auto inf = std::numeric_limits<float>::infinity();
    for (const float value : {inf, -inf, std::nanf(""), 3e38F}) {
        Call call = call_of(square({2, 32, 18, 18}, 64, 3, 1, 1), at::kFloat, 1);
        call.channels_last = true;
        call.x[1][3][9][9] = value;
        call.x[1][3][9][11] = value;
        call.weight.mul_(0.5);
        const Tensor result = call.run(activations[0]), original = call.original(activations[0]);
        CHECK(at::equal(result.isnan(), original.isnan()));
        CHECK(at::equal(result == inf, original == inf));
        CHECK(at::equal(result == -inf, original == -inf));
        const Tensor finite = original.isfinite();
        CHECK(at::allclose(result.index({finite}), original.index({finite}), 1e-4, 1e-5));
        call.x.zero_();
        call.weight[4][2][1][1] = value;
        CHECK(at::equal(call.run(activations[0]).isfinite(),
                        call.original(activations[0]).isfinite()));
    }
}

TEST_CASE("convolutions without images and without what LibTorch computes as well", "[cpu]") {
    at::manual_seed(26);
    if (!is_served(at::kFloat)) return;
    const auto declined = [](const Call& call) { return !call.run(activations[0]).defined(); };
    const Call call = call_of(square({2, 6, 8, 8}, 12, 3, 1, 1), at::kFloat, 5);
    Call other = call;
    other.x = call.x.slice(0, 0, 0);
    other.residual = Tensor();
    CHECK(other.run(activations[1]).sizes() == at::IntArrayRef({0, 12, 8, 8}));
    // The result would be channels-last.
    other = call.as(at::kHalf);
    other.x = last(other.x);
    CHECK(declined(other));
    other = call;
    other.x = call.x.transpose(2, 3);
    CHECK(declined(other));
    // Groups of few channels that lie last.
    other = call_of(square({2, 48, 8, 8}, 48, 3, 1, 1, 1, 3), at::kFloat, 0);
    CHECK(!declined(other));
    other.x = last(other.x);
    CHECK(declined(other));
    // A residual that broadcasts, or is of another dtype.
    other = call;
    other.residual = call.residual.slice(0, 0, 1);
    CHECK(declined(other));
    other.residual = call.residual.to(at::kDouble);
    CHECK(declined(other));
    CHECK(declined(call.as(at::kDouble)));
    other = call;
    other.x = call.x[0];
    CHECK(declined(other));
    other = call;
    other.x = call.x.to(at::kMeta);
    other.weight = call.weight.to(at::kMeta);
    other.bias = other.residual = Tensor();
    CHECK(declined(other));
}

TEST_CASE("what LibTorch refuses is left to it", "[cpu]") {
    at::manual_seed(27);
    const Call call = call_of(square({1, 6, 8, 8}, 12, 3, 1, 1), at::kFloat, 1);
    const auto declined = [&](auto change) {
        Call other = call;
        change(other);
        return !other.run(activations[0]).defined();
    };
    CHECK(declined([](Call& one) { one.shape.stride_h = 0; }));
    CHECK(declined([](Call& one) { one.shape.padding_w = -1; }));
    CHECK(declined([](Call& one) { one.shape.dilation_h = 100; }));
    CHECK(declined([](Call& one) { one.shape.groups = 0; }));
    CHECK(declined([](Call& one) { one.shape.groups = 5; }));
    CHECK(declined([](Call& one) { one.shape.padding_h = int64_t{1} << 60; }));
    CHECK(declined([](Call& one) { one.shape.dilation_w = int64_t{1} << 62; }));
    CHECK(declined([](Call& one) { one.weight = one.weight.slice(1, 0, 5); }));
    CHECK(declined([](Call& one) { one.weight = one.weight.slice(0, 0, 0), one.bias = Tensor(); }));
    CHECK(declined([](Call& one) { one.bias = one.bias.slice(0, 0, 5); }));
    CHECK(declined([](Call& one) { one.bias = one.bias.to(at::kDouble); }));
    CHECK(declined([](Call& one) { one.mean = one.bias; }));
    CHECK(!call.run({99, nullptr}).defined());
    CHECK(!call.run({-1, nullptr}).defined());
}
