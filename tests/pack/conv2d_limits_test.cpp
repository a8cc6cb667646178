// Convolutions at the borders of what the loops for channels that lie last divide, keep and copy.
#include "conv_call.h"
#include "memory_limit.h"

#include <limits>

using namespace pack;
using namespace pack::conv;
using twinkle::tests::MemoryLimit;

namespace {

// With so many threads; the number is what it was afterwards.
struct Threads {
    const int before = at::get_num_threads();
    explicit Threads(int count) { at::set_num_threads(count); }
    ~Threads() { at::set_num_threads(before); }
};

Call channels_last_call(const Shape& shape, at::ScalarType dtype, int extras) {
    Call call = call_of(shape, dtype, extras);
    call.channels_last = true;
    return call;
}

}  // namespace

// A slab has some of a channel's taps then, and bfloat16 two channels in each of its words.
TEST_CASE("channels last: kernels with more taps than a slab", "[isa][cpu]") {
    at::manual_seed(41);
    for (const auto dtype : served_last())
        for (const int64_t channels : {8, 10}) {
            Call call = channels_last_call(square({1, channels, 27, 26}, 5, 25), dtype, 1);
            call.x = last(call.x);
            check_right(call, activations[0]);
            call.weight = last(call.weight);
            check_right(call, activations[0]);
        }
}

// Strides of a dimension of one element mean nothing.
TEST_CASE("channels last: residuals of one channel", "[isa][cpu]") {
    at::manual_seed(42);
    for (const auto dtype : served_last()) {
        Call call = channels_last_call(square({2, 16, 8, 8}, 1, 3), dtype, 0);
        call.x = last(call.x);
        const Tensor image = random({2, 4, 8, 8}, dtype, 1);
        const auto inside = [](const Tensor& all) { return all.slice(2, 1, 7).slice(3, 1, 7); };
        for (const Tensor& residual :
             {inside(image.slice(1, 0, 1)), inside(image).slice(1, 1, 2),
              inside(last(image)).slice(1, 2, 3), inside(image.slice(1, 0, 1).contiguous()),
              random({1, 1, 1, 2}, dtype, 1).slice(3, 0, 1).expand({2, 1, 6, 6}),
              random({2, 1, 6, 6}, dtype, 1)}) {
            call.residual = residual;
            const Tensor result = call.run(activations[1]);
            if (!result.defined()) continue;  // LibTorch's
            CHECK(at::allclose(result.to(at::kDouble),
                               call.as(at::kDouble).original(activations[1]), 2e-2, 2e-2));
        }
        CHECK(call.run(activations[1]).defined());  // the last one
    }
}

TEST_CASE("3 x 3 pixels: what is no number changes nothing else, on any number of threads",
          "[isa][cpu]") {
    at::manual_seed(43);
    if (!has_last(at::kFloat)) return;
    const Call plain = channels_last_call(square({2, 128, 28, 28}, 128, 3, 1, 1), at::kFloat, 1);
    const auto with = [&](auto change) {
        Call call = plain;
        call.x = plain.x.clone();
        call.weight = plain.weight.clone();
        change(call);
        return call;
    };
    const Call in_x = with([](Call& call) { call.x[0][0][0][0] = std::nan(""); });
    const Call in_weight =
        with([](Call& call) { call.weight[70][3][1][1] = std::numeric_limits<float>::infinity(); });
    for (const Call& call : {in_x, in_weight}) {
        const auto result = [&](int threads) {
            const Threads some(threads);
            return call.run(activations[0]);
        };
        const Tensor alone = result(1);
        CHECK(at::equal(alone.isfinite(), call.original(activations[0]).isfinite()));
        for (const int threads : {2, 3, 4, 7})
            CHECK(at::equal(result(threads).nan_to_num(), alone.nan_to_num()));
        // The other image, and channels and rows that do not see it, are what they were.
        const Tensor before = plain.run(activations[0]);
        if (call.weight.isfinite().all().item<bool>()) {
            CHECK(at::equal(alone[1], before[1]));
            CHECK(at::equal(alone.slice(2, 2), before.slice(2, 2)));
        } else {
            CHECK(at::equal(alone.slice(1, 0, 64), before.slice(1, 0, 64)));
            CHECK(at::equal(alone.slice(1, 80), before.slice(1, 80)));
        }
    }
}

// First layers copy x with its padding, unless that is far more than the result.
TEST_CASE("few channels: padding that is larger than all else", "[isa][cpu]") {
    at::manual_seed(44);
    for (const auto dtype : served_last()) {
        check_right(channels_last_call(square({1, 3, 8, 8}, 2, 3, 64, 3000), dtype, 1),
                    activations[0]);
        check_right(channels_last_call(square({1, 3, 8, 8}, 40, 3, 1, 60), dtype, 1),
                    activations[0]);
        // A copy would take 2.4 or 4.8 GB; or 1.9, in whole strides.
        const Call call = channels_last_call(square({1, 3, 8, 8}, 2, 3, 64, 10000), dtype, 1);
        const Call strided = channels_last_call(square({60000, 3, 4, 4}, 16, 3, 64), dtype, 0);
        const MemoryLimit limit(uint64_t{1} << 30);
        CHECK_NOTHROW(call.run(activations[0]));
        CHECK_NOTHROW(strided.run(activations[0]));
    }
}

TEST_CASE("images without channels are LibTorch's", "[cpu]") {
    if (!is_served(at::kFloat)) return;
    for (const bool is_last : {false, true})
        for (const int64_t channels : {1, 2}) {
            Call call;
            call.shape = square({1, 0, 8, 8}, channels, 3);
            call.x = at::zeros({1, 0, 8, 8});
            call.weight = at::zeros({channels, 0, 3, 3});
            call.channels_last = is_last;
            CHECK(!call.run(activations[0]).defined());
            call.weight =
                at::zeros({channels, 0, 3, 3}).as_strided({channels, 0, 3, 3}, {0, 1, 0, 0});
            CHECK(!call.run(activations[0]).defined());
        }
}

// Tiles of many channels: a piece has fewer of them.
TEST_CASE("3 x 3 pixels of small images with thousands of channels", "[isa][cpu]") {
    at::manual_seed(45);
    if (!has_last(at::kFloat)) return;
    check_right(channels_last_call(square({40, 4096, 2, 2}, 20, 3, 1, 1), at::kFloat, 1),
                activations[1]);
}
