// Linear layers with weights of 8 and 4 bits, in every way that an instruction set has, against the
// same rounded numbers in double.
#include <cmath>
#include <limits>

#include "pack_library.h"

namespace {

using namespace pack;

constexpr int64_t group = 64;

struct Kind {
    const char* name;
    bool pairs;  // two values in a byte
};
const Kind kinds[] = {{"linear_int8", false}, {"linear_int4", true}};

struct Weight {
    Tensor values, scales;
    Tensor exact;  // in double
};

// [columns, steps, size] in blocks of 16 columns, as operators/families.h says.
Tensor in_blocks(const Tensor& columns) {
    std::vector<Tensor> blocks;
    for (int64_t at = 0; at < columns.size(0); at += 16)
        blocks.push_back(columns.slice(0, at, at + 16).transpose(0, 1).reshape({-1}));
    return at::cat(blocks);
}

// Of integers [columns, groups, 64].
Weight packed(const Kind& kind, const Tensor& whole) {
    const int64_t columns = whole.size(0), groups = whole.size(1), depth = groups * group;
    const Tensor scales = at::rand({columns, groups}) + 0.1;
    Tensor bytes = whole + (kind.pairs ? 8 : 128);
    if (kind.pairs) {
        const Tensor halves = bytes.reshape({columns, groups, 2, group / 2});
        bytes = halves.select(2, 0) + halves.select(2, 1) * 16;
    }
    return {
        in_blocks(bytes.to(at::kByte).reshape({columns, -1, 4})).reshape({columns, -1}),
        in_blocks(scales.unsqueeze(-1)).reshape({columns, groups}),
        (whole.to(at::kDouble) * scales.to(at::kDouble).unsqueeze(-1)).reshape({columns, depth})};
}

Weight weight(const Kind& kind, int64_t columns, int64_t depth) {
    const int64_t most = kind.pairs ? 7 : 127;
    return packed(kind, at::randint(-most, most + 1, {columns, depth / group, group}, at::kLong));
}

// x as the operator rounds it, in double.
Tensor rounded(const Tensor& x) {
    const Tensor groups = x.to(at::kFloat).reshape({-1, x.size(-1) / group, group});
    const Tensor largest = groups.abs().amax(-1, true);
    const Tensor there = largest > 0;
    const Tensor inverse = at::where(there, 127 / largest, at::zeros_like(largest));
    return (at::round(groups * inverse).to(at::kDouble) * (largest / 127).to(at::kDouble))
        .reshape(x.sizes());
}

Tensor run(const Kind& kind, const Tensor& x, const Weight& weight, const Tensor& bias) {
    return call(kind.name, {x, weight.values, weight.scales, bias})[0];
}

void check(const Kind& kind, const Tensor& x, const Weight& weight, const Tensor& bias) {
    const Tensor result = run(kind, x, weight, bias);
    Tensor expected = at::matmul(rounded(x), weight.exact.t());
    if (bias.defined()) expected = expected + bias.to(at::kDouble);
    // A number that lies between two integers may be rounded to either: half a digit of a few.
    const double unit = x.scalar_type() == at::kFloat  ? 1e-3
                        : x.scalar_type() == at::kHalf ? 2e-3
                                                       : 1e-2;
    INFO(kind.name << " " << at::toString(x.scalar_type()) << " " << x.sizes() << " "
                   << weight.exact.sizes());
    REQUIRE(result.sizes() == expected.sizes());
    REQUIRE(result.scalar_type() == x.scalar_type());
    CHECK((result.to(at::kDouble) - expected).norm().item<double>() <=
          unit * std::max(expected.norm().item<double>(), 1e-30));
}

const at::ScalarType floats[] = {at::kFloat, at::kBFloat16, at::kHalf};

}  // namespace

TEST_CASE("linear layers with fewer bits are right for every dtype, number of rows and size",
          "[isa][cpu]") {
    at::manual_seed(31);
    for (const Kind& kind : kinds)
        for (const auto dtype : floats)
            for (const int64_t rows : {0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 31, 257, 300})
                for (const auto& [columns, depth] : {std::pair<int64_t, int64_t>{1, 64},
                                                     {5, 128},
                                                     {16, 64},
                                                     {31, 192},
                                                     {33, 64},
                                                     {70, 1088},
                                                     {64, 2048}}) {
                    const Weight made = weight(kind, columns, depth);
                    const Tensor x = random({rows, depth}, dtype);
                    check(kind, x, made, random({columns}, dtype));
                    check(kind, x, made, Tensor());
                }
}

TEST_CASE("sums of the largest numbers fit", "[isa][cpu]") {
    at::manual_seed(35);
    for (const Kind& kind : kinds) {
        // One further than quantizing goes: a file may hold it.
        const int64_t least = kind.pairs ? -8 : -128, most = -least - 1;
        const Tensor upper = at::randint(0, 2, {40, 3, group}, at::kLong);
        for (const Tensor& whole :
             {at::full({40, 3, group}, most, at::kLong), at::full({40, 3, group}, least, at::kLong),
              upper * most + (1 - upper) * least})
            for (const int64_t rows : {1, 4, 9, 40}) {
                const Weight made = packed(kind, whole);
                check(kind, at::ones({rows, 3 * group}), made, Tensor());
                check(kind, -at::ones({rows, 3 * group}), made, Tensor());
                check(kind, random({rows, 3 * group}, at::kFloat).sign(), made, Tensor());
            }
    }
}

TEST_CASE("linear layers with fewer bits take any layout and shape of x", "[isa][cpu]") {
    at::manual_seed(32);
    for (const Kind& kind : kinds) {
        const Weight made = weight(kind, 20, 128);
        const Tensor x = random({3, 5, 256}, at::kFloat);
        for (const Tensor& one : {x.slice(-1, 0, 128), x.slice(-1, 64, 192), x.slice(-1, 0, 256, 2),
                                  x.slice(-1, 0, 128).transpose(0, 1), x[0][0].slice(-1, 0, 128)})
            check(kind, one, made, Tensor());
    }
}

TEST_CASE("linear layers with fewer bits round what is large, small or nothing", "[isa][cpu]") {
    at::manual_seed(33);
    for (const Kind& kind : kinds)
        for (const int64_t rows : {2, 20}) {
            const Weight made = weight(kind, 40, 192);
            Tensor x = random({rows, 192}, at::kFloat);
            x[0].fill_(0);
            x[1].slice(0, 0, 64).mul_(1e20);
            x[1].slice(0, 64, 128).mul_(1e-20);
            check(kind, x, made, Tensor());
            CHECK(run(kind, x, made, Tensor())[0].abs().max().item<double>() == 0);
        }
}

TEST_CASE("a row with NaN or infinity has NaN as its result, and no other row", "[isa][cpu]") {
    at::manual_seed(34);
    for (const Kind& kind : kinds)
        for (const int64_t rows : {4, 40})
            for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
                const Weight made = weight(kind, 33, 128);
                Tensor x = random({rows, 128}, at::kFloat);
                x[2][70] = bad;
                const Tensor nans = run(kind, x, made, Tensor()).isnan();
                CHECK(nans[2].all().item<bool>());
                CHECK(nans.any(-1).sum().item<int64_t>() == 1);
            }
}

TEST_CASE("linear layers with fewer bits refuse what does not fit", "[cpu]") {
    const Weight made = weight(kinds[0], 8, 128);
    const Tensor x = random({2, 128}, at::kFloat);
    const auto refused = [&](const Tensor& input, const Tensor& values, const Tensor& scales,
                             const Tensor& bias, const char* kind = "linear_int8") {
        CHECK_THROWS(call(kind, {input, values, scales, bias}));
    };
    refused(random({2, 100}, at::kFloat), made.values, made.scales, Tensor());
    refused(random({2, 192}, at::kFloat), made.values, made.scales, Tensor());
    refused(x.to(at::kDouble), made.values, made.scales, Tensor());
    refused(x, made.values.to(at::kInt), made.scales, Tensor());
    refused(x, made.values, made.scales.to(at::kDouble), Tensor());
    refused(x, made.values, made.scales.slice(1, 0, 1), Tensor());
    refused(x, made.values.t().contiguous().t(), made.scales, Tensor());
    refused(x, made.values, made.scales, random({7}, at::kFloat));
    refused(x, made.values, made.scales, random({8}, at::kHalf));
    refused(x, made.values, made.scales, Tensor(), "linear_int4");
}
