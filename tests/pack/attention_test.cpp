// Scaled dot product attention, in every instruction set that has it.
#include "pack_library.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace {

using namespace pack;

struct Call {
    Tensor query, key, value, mask;
    double scale = 0.2;
    bool causal = false, grouped = false;

    // Undefined: the operator leaves it to LibTorch.
    Tensor run() const {
        const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(
            (op_namespace() + "::attention").c_str(), "");
        torch::jit::Stack stack{query, key, value};
        stack.push_back(mask.defined() ? c10::IValue(mask) : c10::IValue());
        stack.emplace_back(scale);
        stack.emplace_back(causal);
        stack.emplace_back(grouped);
        handle.callBoxed(stack);
        return stack.at(0).isNone() ? Tensor() : stack.at(0).toTensor();
    }

    Tensor original() const {
        return at::scaled_dot_product_attention(query, key, value,
                                                mask.defined() ? std::optional(mask) : std::nullopt,
                                                0, causal, scale, grouped);
    }

    Call in_double() const {
        Call other = *this;
        for (Tensor* one : {&other.query, &other.key, &other.value}) *one = one->to(at::kDouble);
        if (mask.defined() && mask.scalar_type() != at::kBool) other.mask = mask.to(at::kDouble);
        return other;
    }
};

// [batch, heads, rows, width] as projections give it: a row has its heads side by side.
Tensor heads(int64_t batch, int64_t count, int64_t rows, int64_t width, at::ScalarType dtype) {
    return random({batch, rows, count, width}, dtype, 1).transpose(1, 2);
}

Call call_of(at::ScalarType dtype, int64_t rows, int64_t columns, int64_t width,
             int64_t key_heads = 4) {
    return {heads(2, 4, rows, width, dtype),
            heads(2, key_heads, columns, width, dtype),
            heads(2, key_heads, columns, width, dtype),
            {},
            1 / std::sqrt(double(width)),
            false,
            key_heads != 4};
}

std::vector<at::ScalarType> served_dtypes() {
    std::vector<at::ScalarType> served;
    for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf})
        if (call_of(dtype, 20, 20, 16).run().defined()) served.push_back(dtype);
    return served;
}

void check_right(const Call& call) {
    const Tensor result = call.run(), exact = call.in_double().original();
    // By a CPU's own rules few rows are LibTorch's.
    const char* const isa = std::getenv("TWINKLE_PACK_ISA");
    if (!result.defined() && call.query.size(2) < 16 && (!isa || !*isa)) return;
    REQUIRE(result.defined());
    REQUIRE(result.sizes() == exact.sizes());
    if (call.query.size(2) > 1) REQUIRE(result.strides() == call.query.strides());
    REQUIRE(result.scalar_type() == call.query.scalar_type());
    const auto error_of = [&](const Tensor& values) {
        return (values.to(at::kDouble) - exact).abs().max().item<double>();
    };
    const double error = error_of(result), theirs = error_of(call.original());
    const double unit = call.query.scalar_type() == at::kFloat  ? 2e-6
                        : call.query.scalar_type() == at::kHalf ? 2e-3
                                                                : 1.6e-2;
    INFO(at::toString(result.scalar_type()) << " " << call.query.sizes() << " " << call.key.sizes()
                                            << ": error " << error << ", LibTorch's " << theirs);
    CHECK(error <= std::max(1.5 * theirs, unit * exact.abs().max().item<double>()));
}

// Of different kinds of masks for a call.
std::vector<Tensor> masks_for(const Call& call) {
    const int64_t rows = call.query.size(2), columns = call.key.size(2);
    const auto dtype = call.query.scalar_type();
    const Tensor some = at::rand({2, 1, rows, columns}) < 0.7;
    return {random({rows, columns}, dtype, 1),
            random({1, columns}, dtype, 1),
            random({2, 4, rows, columns}, dtype, 1),
            random({2, 1, 1, columns}, dtype, 1),
            some,
            some.slice(0, 0, 1).slice(2, 0, 1),
            at::rand({rows, columns + 7}).slice(1, 3, columns + 3) < 0.5,
            at::zeros({rows, columns}, dtype).masked_fill(some[0][0], -6e4),
            at::zeros({rows, columns}, dtype)
                .masked_fill(some[1][0], -std::numeric_limits<double>::infinity())};
}

}  // namespace

TEST_CASE("attention is right for every dtype and size", "[isa][cpu]") {
    at::manual_seed(41);
    // Around tiles, vectors, blocks of keys and rows of a piece.
    for (const auto dtype : served_dtypes())
        for (const auto& [rows, columns, width] : {std::tuple(1, 1, 1),
                                                   {5, 17, 8},
                                                   {12, 32, 16},
                                                   {13, 33, 64},
                                                   {16, 255, 40},
                                                   {20, 257, 72},
                                                   {193, 300, 64},
                                                   {40, 513, 80},
                                                   {24, 24, 256},
                                                   {31, 40, 129}}) {
            check_right(call_of(dtype, rows, columns, width));
            if (rows > 1) check_right(call_of(dtype, rows, columns, width, 2));
        }
}

TEST_CASE("masks of attention", "[isa][cpu]") {
    at::manual_seed(42);
    for (const auto dtype : served_dtypes())
        for (const auto& [rows, columns, width] :
             {std::tuple(20, 20, 16), {17, 270, 40}, {200, 35, 64}, {200, 531, 16}}) {
            Call call = call_of(dtype, rows, columns, width);
            for (const double scale : {0.3, 0.0, -0.2}) {
                call.scale = scale;
                check_right(call);
                for (const Tensor& mask : masks_for(call)) {
                    call.mask = mask;
                    check_right(call);
                }
                call.mask = Tensor();
            }
            call.scale = 0.3;
            call.causal = true;
            check_right(call);
        }
}

TEST_CASE("rows that see no key have zeros", "[isa][cpu]") {
    at::manual_seed(43);
    for (const auto dtype : served_dtypes()) {
        Call call = call_of(dtype, 20, 300, 16);
        call.mask = at::ones({20, 300}, at::kBool);
        call.mask[3].fill_(false);
        call.mask[7].slice(0, 0, 280).fill_(false);
        check_right(call);
        CHECK(call.run().select(2, 3).abs().max().item<double>() == 0);
    }
}

// The largest score's own weight is 1, whatever is lost where such scores are rounded.
TEST_CASE("scores of any magnitude", "[isa][cpu]") {
    at::manual_seed(48);
    for (const auto dtype : served_dtypes())
        for (const bool causal : {false, true}) {
            Call call = call_of(dtype, 40, 300, 16);
            call.causal = causal;
            call.scale = 1e12;
            check_right(call);
        }
}

// LibTorch's own formula scales queries and keys first.
TEST_CASE("products that overflow without the scale", "[isa][cpu]") {
    at::manual_seed(49);
    for (const auto dtype : served_dtypes()) {
        if (dtype == at::kHalf) continue;
        for (const double key : {1e19, -1e19}) {
            Call call = call_of(dtype, 40, 300, 16);
            call.query = at::full_like(call.query, 1e19), call.key = at::full_like(call.key, key);
            call.scale = 0.125;
            for (const Tensor& mask : {Tensor(), at::rand({40, 300}) < 0.5}) {
                call.mask = mask;
                const Tensor exact = call.in_double().original();
                CHECK(at::allclose(call.run().to(at::kDouble), exact, 1e-2, 1e-2));
            }
        }
    }
}

// Zeros would look like a result.
TEST_CASE("a row of which every score overflows is no number", "[isa][cpu]") {
    at::manual_seed(50);
    const double infinity = std::numeric_limits<double>::infinity();
    for (const auto dtype : served_dtypes()) {
        if (dtype == at::kHalf) continue;
        Call call = call_of(dtype, 40, 300, 16);
        call.query = at::full_like(call.query, 1e20), call.key = at::full_like(call.key, -1e20);
        const auto check = [&] {
            const Tensor result = call.run();
            CHECK(result.select(2, 3).isnan().all().item<bool>());
            return result;
        };
        check();
        call.mask = at::ones({40, 300}, at::kBool);
        call.mask[5].fill_(false);
        CHECK(check().select(2, 5).abs().max().item<double>() == 0);
        call.mask = at::zeros({40, 300}, dtype);
        call.mask[5].fill_(-infinity);
        CHECK(check().select(2, 5).abs().max().item<double>() == 0);
        call.mask = Tensor(), call.causal = true;
        check();
    }
}

TEST_CASE("what is no number stays in the rows that see it", "[isa][cpu]") {
    at::manual_seed(44);
    const double infinity = std::numeric_limits<double>::infinity();
    for (const auto dtype : served_dtypes())
        for (const double what : {std::nan(""), infinity, -infinity}) {
            Call call = call_of(dtype, 40, 300, 16);
            call.key[0][1][20][3] = what;
            call.query[1][0][4][0] = what;
            call.causal = true;
            // LibTorch's half precisions lose some.
            CHECK(at::equal(call.run().isnan(), call.in_double().original().isnan()));
        }
}

TEST_CASE("values that are no numbers stay in the rows that see them, with any number of threads",
          "[isa][cpu]") {
    at::manual_seed(47);
    const int threads = at::get_num_threads();
    const double infinity = std::numeric_limits<double>::infinity();
    for (const auto dtype : served_dtypes())
        for (const int64_t rows : {64, 400})
            for (const double what : {std::nan(""), infinity}) {
                Call call = call_of(dtype, rows, rows, 24);
                call.causal = true;
                const int64_t seen = rows - 5;
                const Tensor last = call.value.slice(2, seen);
                last.zero_();
                at::set_num_threads(1);
                const Tensor without = call.run();
                last.fill_(what);
                for (const int some : {1, 3, 16}) {
                    at::set_num_threads(some);
                    const Tensor result = call.run();
                    CHECK(at::equal(result.slice(2, 0, seen), without.slice(2, 0, seen)));
                    CHECK_FALSE(result.slice(2, seen).isfinite().any().item<bool>());
                }
            }
    at::set_num_threads(threads);
}

TEST_CASE("attention of parts of tensors, in any order", "[isa][cpu]") {
    at::manual_seed(45);
    for (const auto dtype : served_dtypes()) {
        Call call = call_of(dtype, 20, 50, 24);
        const Tensor packed = random({2, 50, 3, 4, 24}, dtype, 1);
        call.query = packed.select(2, 0).transpose(1, 2).slice(2, 10, 30);
        call.key = packed.select(2, 1).transpose(1, 2);
        call.value = packed.select(2, 2).transpose(1, 2);
        const Tensor result = call.run();
        CHECK(result.strides() == at::IntArrayRef({20 * 4 * 24, 24, 4 * 24, 1}));
        Call plain = call;
        for (Tensor* one : {&plain.query, &plain.key, &plain.value}) *one = one->contiguous();
        CHECK(at::equal(plain.run(), result));
        CHECK(plain.run().is_contiguous());
        call.key = call.key.narrow(0, 0, 1).expand({2, 4, 50, 24});
        CHECK(call.run().defined());
    }
}

TEST_CASE("attention does not depend on the number of threads", "[isa][cpu]") {
    at::manual_seed(46);
    const int threads = at::get_num_threads();
    for (const auto dtype : served_dtypes()) {
        Call call = call_of(dtype, 250, 120, 32);
        call.causal = true;
        at::set_num_threads(1);
        const Tensor alone = call.run();
        for (const int some : {2, 3, 16}) {
            at::set_num_threads(some);
            CHECK(at::equal(call.run(), alone));
        }
    }
    at::set_num_threads(threads);
}

TEST_CASE("what attention leaves to LibTorch", "[cpu]") {
    at::manual_seed(47);
    const Call call = call_of(at::kFloat, 20, 30, 16);
    const auto declined = [&](auto change) {
        Call other = call;
        change(other);
        return !other.run().defined();
    };
    CHECK(declined([](Call& one) { one = one.in_double(); }));
    CHECK(declined([](Call& one) { one.query = one.query[0]; }));
    CHECK(declined([](Call& one) { one.key = one.key.to(at::kHalf); }));
    CHECK(declined([](Call& one) { one.key = one.key.slice(2, 1); }));
    CHECK(declined([](Call& one) { one.key = one.value = one.key.slice(1, 0, 2); }));
    CHECK(declined([](Call& one) { one.value = one.value.slice(3, 0, 8); }));
    CHECK(declined(
        [](Call& one) { one.query = one.query.transpose(2, 3).contiguous().transpose(2, 3); }));
    CHECK(declined([](Call& one) { one.query = one.query.slice(2, 0, 0); }));
    CHECK(declined([](Call& one) { one.key = one.value = one.key.slice(2, 0, 0); }));
    CHECK(declined([](Call& one) { one = call_of(at::kFloat, 20, 30, 257); }));
    CHECK(declined([](Call& one) { one.mask = at::zeros({20, 30}, at::kDouble); }));
    CHECK(declined([](Call& one) { one.mask = at::zeros({30}); }));
    CHECK(declined([](Call& one) { one.mask = at::zeros({20, 1}); }));
    CHECK(declined([](Call& one) { one.mask = at::zeros({3, 1, 20, 30}); }));
    CHECK(declined([](Call& one) { one.mask = at::zeros({30, 20}).t(); }));
    CHECK(declined([](Call& one) { one.mask = at::zeros({20, 30}), one.causal = true; }));
    CHECK(declined([](Call& one) {
        for (Tensor* tensor : {&one.query, &one.key, &one.value}) *tensor = tensor->to(at::kMeta);
    }));
}
