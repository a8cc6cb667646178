// Linear layers, alone and with what follows them, in every way that an instruction set has.
#include <cmath>

#include "linear_call.h"

namespace {

using namespace pack;
using namespace pack::linear_layers;

// The rows at which one way gives way to the next lie between these.
const std::vector<int64_t> row_counts{1, 2, 3, 5, 6, 7, 12, 13, 24, 40, 49, 64, 257, 300};

// Depths and widths around those of vectors, tiles and panels.
const std::vector<Size> sizes{{1, 1},   {3, 5},    {16, 4},   {31, 33},  {64, 64},
                              {97, 31}, {257, 70}, {512, 36}, {1030, 9}, {70, 1100}};

// A layer with a bias, and one without.
void check_layers(const Tensor& x, const Tensor& weight, const Tensor& bias) {
    for (const Tensor& one : {bias, Tensor()})
        check_close(call("linear", {x, weight, one})[0], layer(x, weight, one),
                    layer(wide(x), wide(weight), wide(one)));
}

}  // namespace

TEST_CASE("linear layers are right for every dtype, number of rows, depth and width", "[isa]") {
    at::manual_seed(11);
    for (auto dtype : dtypes())
        for (const int64_t rows : row_counts)
            for (const Size& size : sizes)
                check_layers(random({rows, size.depth}, dtype), weight(size, dtype),
                             random({size.columns}, dtype));
}

TEST_CASE("many rows are added up as exactly as LibTorch does", "[isa][cpu]") {
    at::manual_seed(15);
    for (const int64_t rows : {64, 300})
        for (const int64_t depth : {256, 2048}) {
            const Tensor x = random({rows, depth}, at::kFloat);
            const Tensor weights = weight({depth, 96}, at::kFloat);
            const Tensor exact = layer(wide(x), wide(weights), {});
            const auto error = [&](const Tensor& result) {
                return ((result.to(at::kDouble) - exact).norm() / exact.norm()).item<double>();
            };
            const double theirs = error(layer(x, weights, {}));
            const double ours = error(call("linear", {x, weights, Tensor()})[0]);
            INFO(rows << " rows, depth " << depth << ": " << ours << ", LibTorch's " << theirs);
            CHECK(ours <= std::max(1.05 * theirs, 2.3e-7));
        }
}

TEST_CASE("activations and gates of linear layers are right", "[isa]") {
    at::manual_seed(12);
    for (auto dtype : dtypes())
        for (const int64_t rows : {1, 4, 21, 30, 70})
            for (const Size& size : {Size{40, 50}, Size{300, 130}}) {
                const Tensor x = random({rows, size.depth}, dtype, 1);
                const Tensor first = weight(size, dtype), second = weight(size, dtype);
                const Tensor bias = random({size.columns}, dtype, 1);
                for (const Activation& activation : activations) {
                    const std::string name = activation.name, op = "linear_" + name;
                    const auto of = activation.of;
                    INFO(name);
                    check_close(call(op, {x, first, bias})[0], of(layer(x, first, bias)),
                                of(layer(wide(x), wide(first), wide(bias))));
                    if (name == "relu") continue;
                    const auto gate = [&](auto as) {
                        return of(layer(as(x), as(first), Tensor())) *
                               layer(as(x), as(second), as(bias));
                    };
                    check_close(call(op + "_mul", {x, first, Tensor(), second, bias})[0],
                                gate([](const Tensor& one) { return one; }), gate(wide));
                }
            }
}

TEST_CASE("linear layers of one input, each of its own width", "[isa]") {
    at::manual_seed(13);
    for (auto dtype : dtypes())
        for (const int64_t rows : {1, 9, 100}) {
            const Tensor x = random({rows, 70}, dtype);
            Tensors weights, arguments{x};
            for (const int64_t columns : {33, 100, 1}) {
                weights.push_back(weight({70, columns}, dtype));
                arguments.push_back(weights.back());
                arguments.emplace_back();
            }
            arguments[2] = random({33}, dtype);
            const Tensors three = call("linear3", arguments);
            const Tensors two = call("linear2", {arguments.begin(), arguments.begin() + 5});
            REQUIRE(three.size() == 3);
            REQUIRE(two.size() == 2);
            for (size_t i = 0; i < 3; ++i) {
                const Tensor& bias = arguments[2 + 2 * i];
                const Tensor exact = layer(wide(x), wide(weights[i]), wide(bias));
                check_close(three[i], layer(x, weights[i], bias), exact);
                if (i < 2) CHECK(at::equal(two[i], three[i]));
            }
        }
}

TEST_CASE("linear layers of any strides and dimensions", "[isa]") {
    at::manual_seed(14);
    const Tensor bias = random({50, 2}, at::kFloat).select(1, 0);
    for (auto dtype : {at::kFloat, at::kBFloat16}) {
        const Tensor base = random({6, 5, 128}, dtype), other = random({200, 256}, dtype, 0.1);
        for (const Tensor& x : {base, base.transpose(0, 1), base.slice(0, 0, 6, 2), base[0][0],
                                base.slice(2, 3, 131)})
            for (const Tensor& rows : {other.slice(0, 0, 200, 4), other.slice(0, 7, 57)})
                for (const Tensor& w :
                     {rows.slice(1, 0, x.size(-1)), rows.slice(1, 0, 2 * x.size(-1), 2),
                      other.t().slice(0, 0, 50).slice(1, 0, x.size(-1))})
                    check_layers(x, w, bias.to(dtype));
    }
}

TEST_CASE("what is no number stays in its own row and column", "[isa]") {
    at::manual_seed(15);
    for (const int64_t rows : {2, 60}) {
        Tensor x = random({rows, 40}, at::kFloat), w = weight({40, 70}, at::kFloat);
        x[1][39] = std::nan("");
        w[69][0] = INFINITY;
        const Tensor y = call("linear", {x, w, Tensor()})[0];
        CHECK(y[1].isnan().all().item<bool>());
        CHECK(y.select(1, 69).isfinite().logical_not().all().item<bool>());
        CHECK(y[0].slice(0, 0, 69).isfinite().all().item<bool>());
    }
}

TEST_CASE("no rows and no columns, on any device") {
    const Tensor x = at::ones({0, 8}), w = at::ones({5, 8});
    CHECK(call("linear", {x, w, Tensor()})[0].sizes() == at::IntArrayRef({0, 5}));
    CHECK(call("linear", {at::ones({3, 8}), at::ones({0, 8}), Tensor()})[0].sizes() ==
          at::IntArrayRef({3, 0}));
    const auto meta = at::TensorOptions().device(at::kMeta);
    const Tensors results =
        call("linear3", {at::empty({2, 3, 8}, meta), at::empty({5, 8}, meta), Tensor(),
                         at::empty({6, 8}, meta), Tensor(), at::empty({7, 8}, meta), Tensor()});
    CHECK(results[2].is_meta());
    CHECK(results[2].sizes() == at::IntArrayRef({2, 3, 7}));
}

TEST_CASE("what does not fit a linear layer is refused") {
    const Tensor x = at::ones({3, 4});
    CHECK(has(refusal([&] { call("linear", {x, at::ones({5, 6}), Tensor()}); }),
              "linear: the weight is [5, 6], which does not fit x, [3, 4]"));
    CHECK(has(refusal([&] { call("linear", {x, at::ones({5, 4}), at::ones({4})}); }),
              "the bias is [4], which does not fit the weight, [5, 4]"));
    CHECK(has(refusal([&] {
                  call("linear_silu_mul",
                       {x, at::ones({5, 4}), Tensor(), at::ones({6, 4}), Tensor()});
              }),
              "the weights have results of different sizes"));
    CHECK(has(refusal([&] { call("linear", {x, at::ones({5, 4}, at::kHalf), Tensor()}); }),
              "x is float32, and its weight or bias is float16"));
}

TEST_CASE("a call may say which way it goes, and how much a thread does") {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
        for (const int64_t rows : {1, 20, 100}) {
            const Tensor x = random({rows, 96}, dtype), weight = random({70, 96}, dtype),
                         bias = random({70}, dtype);
            const Tensor original = at::linear(x, weight, bias);
            const Tensor exact =
                at::linear(x.to(at::kDouble), weight.to(at::kDouble), bias.to(at::kDouble));
            for (const int64_t way : {0, 1, 2, 3, 7}) {
                for (const int64_t grain : {0, 1, 1 << 20, -5}) {
                    INFO("way " << way);
                    check_close(call("linear", {x, weight, bias}, {way, grain})[0], original,
                                exact);
                }
            }
            CHECK(at::equal(call("linear", {x, weight, bias}, {int64_t{3}, int64_t{0}})[0],
                            original));
        }
    }
}

TEST_CASE("a grain changes no value") {
    const Tensor x = random({300, 100}, at::kFloat), weight = random({100}, at::kFloat);
    for (const int64_t grain : {1, 1000, 1 << 24, -1}) {
        CHECK(at::equal(call("rms_norm", {x, weight}, {1e-6, 0.0, false, grain, int64_t{0}})[0],
                        call("rms_norm", {x, weight})[0]));
        CHECK(at::equal(call("silu", {x}, {grain, int64_t{0}})[0], call("silu", {x})[0]));
    }
}
