// Packed weights made numbers again, linear layers with weights of fp8, and rows rounded to fp8,
// against LibTorch's own conversions.
#include <cmath>
#include <limits>

#include "pack_library.h"

namespace {

using namespace pack;

Tensors call_here(const char* op, const Tensors& tensors) {
    Tensors moved;
    for (const Tensor& one : tensors) moved.push_back(one.defined() ? here(one) : one);
    Tensors results = call(op, moved);
    for (Tensor& one : results) one = one.cpu();
    return results;
}

const at::ScalarType floats[] = {at::kFloat, at::kBFloat16, at::kHalf};

Tensor fp8(const Tensor& values) {
    return values.to(at::kFloat8_e4m3fn);
}
Tensor bytes_of(const Tensor& values) {
    return values.contiguous().view(at::kByte);
}

}  // namespace

TEST_CASE("every number of 8 bits is made the one that it is") {
    const Tensor all = at::arange(0, 256, at::kInt).to(at::kByte);
    const Tensor values = all.view(at::kFloat8_e4m3fn).reshape({4, 64});
    const Tensor scales = at::full({4, 1}, 0.5f);
    for (const auto dtype : floats) {
        const Tensor made = call_here("unpack_fp8", {random({1, 64}, dtype), values, scales})[0];
        const Tensor expected = (values.to(at::kFloat) * 0.5).to(dtype);
        CHECK(made.scalar_type() == dtype);
        CHECK(at::equal(made.isnan(), expected.isnan()));
        CHECK(at::equal(made.nan_to_num(), expected.nan_to_num()));
    }
}

TEST_CASE("packed weights are unpacked, also where the last block has fewer columns") {
    at::manual_seed(41);
    for (const bool pairs : {false, true})
        for (const int64_t columns : {1, 5, 16, 31, 48})
            for (const int64_t groups : {1, 3, 19}) {
                const int64_t most = pairs ? 7 : 127;
                const Tensor whole = at::randint(-most, most + 1, {columns, groups, 64}, at::kLong);
                const Tensor scales = at::rand({columns, groups}) + 0.1;
                Tensor bytes = whole + (pairs ? 8 : 128);
                if (pairs) {
                    const Tensor halves = bytes.reshape({columns, groups, 2, 32});
                    bytes = halves.select(2, 0) + halves.select(2, 1) * 16;
                }
                const auto blocks = [&](const Tensor& steps) {
                    std::vector<Tensor> all;
                    for (int64_t at = 0; at < columns; at += 16)
                        all.push_back(steps.slice(0, at, at + 16).transpose(0, 1).reshape({-1}));
                    return at::cat(all).reshape({columns, -1}).contiguous();
                };
                const Tensor values = blocks(bytes.to(at::kByte).reshape({columns, -1, 4}));
                const Tensor exact =
                    (whole.to(at::kFloat) * scales.unsqueeze(-1)).reshape({columns, groups * 64});
                const Tensor at_odd_vector = at::cat({values.new_zeros({4}), values.reshape({-1})})
                                                 .slice(0, 4)
                                                 .reshape(values.sizes());
                for (const auto dtype : floats)
                    for (const Tensor& given : {values, at_odd_vector}) {
                        const Tensor made = call_here(pairs ? "unpack_int4" : "unpack_int8",
                                                      {random({2, groups * 64}, dtype), given,
                                                       blocks(scales.unsqueeze(-1))})[0];
                        INFO(columns << " x " << groups << ", " << at::toString(dtype));
                        CHECK(at::equal(made, exact.to(dtype)));
                    }
            }
}

TEST_CASE("linear layers with weights of fp8 are right") {
    at::manual_seed(42);
    for (const auto dtype : floats)
        for (const int64_t rows : {1, 7, 20, 40, 70})
            for (const auto& [columns, depth] :
                 {std::pair<int64_t, int64_t>{1, 64}, {48, 192}, {33, 128}}) {
                const Tensor values = fp8(random({columns, depth}, at::kFloat).cpu());
                const Tensor scales = at::rand({columns, 1}) + 0.1;
                const Tensor x = random({rows, depth}, dtype).cpu();
                const Tensor bias = random({columns}, dtype).cpu();
                const Tensor result = call_here("linear_fp8", {x, values, scales, bias})[0];
                const Tensor weight = values.to(at::kDouble) * scales.to(at::kDouble);
                const auto error = [&](const Tensor& of) {
                    const Tensor expected =
                        at::matmul(of.to(at::kDouble), weight.t()) + bias.to(at::kDouble);
                    return ((result.to(at::kDouble) - expected).norm() / expected.norm())
                        .item<double>();
                };
                CHECK(result.scalar_type() == dtype);
                const double limit = dtype == at::kFloat ? 1e-4 : 1e-2;
                if (rows <= 32 || columns % 16 != 0 || error(x) <= limit) {
                    CHECK(error(x) <= limit);
                } else {  // on a GPU rows of x are rounded, too
                    const auto rounded = call_here("round_to_fp8", {x});
                    CHECK(error(rounded[0].to(at::kDouble) * rounded[1]) <= std::max(limit, 5e-4));
                }
            }
}

TEST_CASE("rows are rounded to fp8 as LibTorch rounds") {
    at::manual_seed(43);
    for (const auto dtype : floats) {
        Tensor x = random({9, 320}, dtype).cpu();
        x[1].fill_(0);
        x[2][5] = std::nan("");
        x[3][6] = std::numeric_limits<float>::infinity();
        x[4].mul_(1e-3);
        const auto made = call_here("round_to_fp8", {x});
        const Tensor &values = made[0], &scales = made[1];
        CHECK(values.scalar_type() == at::kFloat8_e4m3fn);
        for (const int64_t row : {0, 4, 5, 6, 7, 8}) {
            const Tensor wide = x[row].to(at::kFloat), largest = wide.abs().amax();
            const Tensor inverse = at::full_like(largest, 448) / largest;
            CHECK(at::equal(bytes_of(values[row]), bytes_of(fp8(wide * inverse))));
            CHECK(at::allclose(scales[row][0], largest / 448, 1e-6));
        }
        CHECK(values[1].to(at::kFloat).abs().max().item<float>() == 0);
        CHECK(values[2].to(at::kFloat).isnan().sum().item<int64_t>() == 1);
        CHECK(!scales[3].isfinite().all().item<bool>());
    }
}

TEST_CASE("packed weights that do not fit are refused") {
    const Tensor x = random({2, 128}, at::kFloat), values = fp8(random({8, 128}, at::kFloat).cpu());
    const Tensor scales = at::ones({8, 1});
    CHECK_THROWS(call_here("linear_fp8", {x, bytes_of(values), scales, Tensor()}));
    CHECK_THROWS(call_here("linear_fp8", {x, values, at::ones({8, 2}), Tensor()}));
    CHECK_THROWS(call_here("linear_fp8", {x.slice(1, 0, 64), values, scales, Tensor()}));
    CHECK_THROWS(call_here("unpack_int8", {x, values, at::ones({8, 2})}));
    CHECK_THROWS(call_here("round_to_fp8", {random({2, 100}, at::kFloat)}));
    CHECK_THROWS(call_here("round_to_fp8", {random({2, 256}, at::kFloat).slice(1, 0, 128)}));
}
