// Pooling of images by the largest element, in every instruction set that has it.
#include "pack_library.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <cmath>

namespace {

using namespace pack;

struct Windows {
    std::vector<int64_t> x;
    int64_t kernel_h, kernel_w, stride, padding, dilation;
};

// Undefined: the operator leaves it to LibTorch.
Tensor run(const Tensor& x, const Windows& windows, bool ceil_mode = false) {
    const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(
        (op_namespace() + "::max_pool2d").c_str(), "");
    torch::jit::Stack stack{x};
    for (const int64_t number :
         {windows.kernel_h, windows.kernel_w, windows.stride, windows.stride, windows.padding,
          windows.padding, windows.dilation, windows.dilation})
        stack.emplace_back(number);
    stack.emplace_back(ceil_mode);
    handle.callBoxed(stack);
    return stack.at(0).isNone() ? Tensor() : stack.at(0).toTensor();
}

Tensor original(const Tensor& x, const Windows& windows) {
    return at::max_pool2d(x, {windows.kernel_h, windows.kernel_w}, windows.stride, windows.padding,
                          windows.dilation);
}

bool is_served() {
    return run(at::ones({1, 1, 2, 2}), {{}, 2, 2, 2, 0, 1}).defined();
}

const std::vector<Windows> all{{{1, 5, 33, 41}, 3, 3, 2, 1, 1}, {{2, 3, 20, 17}, 5, 5, 1, 2, 1},
                               {{1, 2, 9, 40}, 3, 3, 1, 1, 2},  {{2, 7, 7, 7}, 7, 7, 1, 0, 1},
                               {{1, 4, 31, 5}, 2, 3, 3, 1, 1},  {{1, 2, 3, 600}, 3, 3, 1, 1, 1}};

}  // namespace

TEST_CASE("the largest elements of windows, of every dtype", "[isa][cpu]") {
    at::manual_seed(31);
    if (!is_served()) return;
    for (auto dtype : {at::kFloat, at::kBFloat16, at::kHalf})
        for (const Windows& windows : all) {
            Tensor x = random(windows.x, dtype);
            x[0][1] = -INFINITY;
            x[0][0][1][2] = std::nan("");
            const Tensor result = run(x, windows), expected = original(x, windows);
            REQUIRE(result.defined());
            CHECK(result.strides() == expected.strides());
            CHECK(at::equal(result.isnan(), expected.isnan()));
            CHECK(at::equal(result.nan_to_num(), expected.nan_to_num()));
            const Tensor part = at::cat({x, x}, 1).slice(1, 1, 1 + x.size(1)).slice(0, 0, 1);
            CHECK(at::equal(run(part, windows).nan_to_num(), original(part, windows).nan_to_num()));
        }
}

TEST_CASE("windows of images whose channels lie last", "[isa][cpu]") {
    at::manual_seed(32);
    if (!is_served()) return;
    for (const Windows& windows : all) {
        const Tensor wide = random(windows.x, at::kFloat);
        wide[0][1] = -INFINITY;
        wide[0][0][1][2] = std::nan("");
        const Tensor x =
            at::cat({wide, wide, wide, wide}, 1).contiguous(at::MemoryFormat::ChannelsLast);
        for (const Tensor& part : {x, x.slice(1, 1, 2 + wide.size(1))}) {
            const Tensor result = run(part, windows), expected = original(part, windows);
            REQUIRE(result.defined());
            CHECK(result.strides() == expected.strides());
            CHECK(at::equal(result.isnan(), expected.isnan()));
            CHECK(at::equal(result.nan_to_num(), expected.nan_to_num()));
        }
    }
}

// The instructions that round to bfloat16 make zeros of them.
TEST_CASE("the largest of numbers that are hardly any", "[isa][cpu]") {
    if (!is_served()) return;
    const Windows windows{{}, 3, 3, 2, 1, 1};
    const Tensor x = at::full({1, 16, 9, 9}, -1e-39).to(at::kBFloat16);
    for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
        const Tensor result = run(x.contiguous(format), windows);
        if (result.defined()) CHECK(at::equal(result, original(x, windows)));
    }
}

TEST_CASE("what is not pooled", "[cpu]") {
    if (!is_served()) return;
    const Windows windows{{}, 3, 3, 2, 1, 1};
    const Tensor x = at::ones({2, 4, 9, 9});
    CHECK(run(x.slice(0, 0, 0), windows).sizes() == at::IntArrayRef({0, 4, 5, 5}));
    CHECK(!run(x, windows, true).defined());
    CHECK(!run(x[0], windows).defined());
    CHECK(!run(x.to(at::kLong), windows).defined());
    CHECK(!run(x.to(at::kDouble), windows).defined());
    CHECK(!run(x.to(at::kHalf).contiguous(at::MemoryFormat::ChannelsLast), windows).defined());
    CHECK(!run(x.to(at::kMeta), windows).defined());
    CHECK(!run(x, {{}, 3, 3, 2, 2, 1}).defined());  // more padding than half a window
    CHECK(!run(x, {{}, 3, 3, 0, 1, 1}).defined());
    CHECK(!run(x, {{}, 30, 3, 1, 1, 1}).defined());
    CHECK(!run(x, {{}, -1, 3, 1, 0, 1}).defined());
}
