// Common properties of all operators: sizes, threads, memory, refusals, instruction sets.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "formulas.h"

namespace {

using namespace pack;

std::vector<Formula> all_formulas() {
    std::vector<Formula> all = elementwise_formulas();
    all.insert(all.end(), norm_formulas().begin(), norm_formulas().end());
    return all;
}

Tensor norm(const Tensor& x, const Tensor& weight) {
    return call("rms_norm", {x, weight})[0];
}

Tensor product(const Tensor& gate, const Tensor& up) {
    return call("silu_mul", {gate, up})[0];
}

}  // namespace

TEST_CASE("a transposed tensor gives a transposed result, as in PyTorch") {
    const Tensor x = here(at::randn({4, 6, 8})).permute({2, 0, 1});
    CHECK(call("silu", {x})[0].strides() == at::silu(x).strides());
    CHECK(call("silu_mul", {x, x.contiguous()})[0].strides() == x.strides());
    const Tensor rows = here(at::randn({4, 6, 8})).transpose(0, 1);
    CHECK(norm(rows, here(at::ones({8}))).strides() == rows.strides());
    const Tensor image = here(at::randn({2, 3, 5, 7})).contiguous(at::MemoryFormat::ChannelsLast);
    CHECK(call("gelu", {image})[0].is_contiguous(at::MemoryFormat::ChannelsLast));
}

TEST_CASE("layer normalization gives contiguous results, as in PyTorch") {
    const Tensor one = here(at::ones({8}));
    for (const Tensor& x :
         {here(at::randn({4, 6, 8})).transpose(0, 1), here(at::randn({4, 8, 6})).transpose(1, 2),
          here(at::randn({2, 3, 5, 8})).permute({2, 0, 1, 3})}) {
        const Tensor expected = at::layer_norm(x, {8}, one, one);
        const Tensor result = call("layer_norm", {x, one, one})[0];
        CHECK(result.strides() == expected.strides());
        CHECK(at::allclose(result, expected, 1e-5, 1e-5));
        const Tensors both = call("add_layer_norm", {x, x, one, one});
        CHECK(both[0].strides() == expected.strides());
        CHECK(at::allclose(both[0], at::layer_norm(x + x, {8}, one, one), 1e-5, 1e-5));
        CHECK(at::equal(both[1], x + x));
    }
}

TEST_CASE("empty tensors, one element and no dimension") {
    for (const Formula& formula : all_formulas())
        for (auto dtype : dtypes()) {
            for (const std::vector<int64_t>& shape :
                 std::vector<std::vector<int64_t>>{{0, 8}, {3, 0, 8}, {0}, {3, 0}}) {
                const auto inputs = formula.inputs([&] { return here(at::empty(shape, dtype)); },
                                                   shape.back(), dtype);
                const Tensors results = formula.run(inputs);
                CHECK(results[0].sizes() == formula.original(inputs)[0].sizes());
                if (formula.backward.empty()) continue;
                Tensors arguments{at::empty(results[0].sizes(), results[0].options())};
                for (size_t i = 0; i < inputs.size() && (i < 2 || formula.backward_takes_bias); ++i)
                    arguments.push_back(inputs[i]);
                for (const Tensor& grad : call(formula.backward, arguments, formula.numbers))
                    CHECK((grad.numel() == 0 || grad.eq(0).all().item<bool>()));
            }
            const bool elementwise = formula.kinds.back() == Kind::values;
            if (!elementwise || formula.even) continue;
            for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{1}, {}})
                check_right(
                    formula,
                    formula.inputs([&] { return here(at::full(shape, 1.25, dtype)); }, 1, dtype));
        }
}

TEST_CASE("rows of any length, and many of them, over all threads", "[isa]") {
    at::manual_seed(6);
    const std::vector<std::vector<int64_t>> shapes{{2, 200002}, {50001, 6}, {129, 4096}};
    for (const Formula& formula : all_formulas())
        for (auto dtype : {at::kFloat, at::kBFloat16})
            for (const auto& shape : shapes)
                check_right(formula, formula.inputs([&] { return random(shape, dtype); },
                                                    shape.back(), dtype));
}

TEST_CASE("more dimensions than anyone has, and sizes of one") {
    at::manual_seed(7);
    const Tensor many = random({2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 5}, at::kFloat);
    const Tensor every_second = many.slice(1, 0, 3, 2)
                                    .slice(3, 0, 3, 2)
                                    .slice(5, 0, 3, 2)
                                    .slice(7, 0, 3, 2)
                                    .slice(9, 0, 3, 2);
    const Tensor mixed = every_second.permute({10, 8, 6, 4, 2, 0, 9, 7, 5, 3, 1, 11});
    const Tensor ones = random({1, 7, 1, 9, 1, 5}, at::kFloat).transpose(1, 3);
    for (const Formula& formula : all_formulas()) {
        if (formula.even) continue;
        for (const Tensor& x : {mixed, every_second, ones})
            check_right(formula, formula.inputs([&] { return x; }, 5, at::kFloat));
    }
    CHECK(call("relu", {here(at::ones(std::vector<int64_t>(64, 1)))})[0].dim() == 64);
}

TEST_CASE("elements at addresses that their type does not divide", "[cpu]") {
    at::manual_seed(8);
    for (const Formula& formula : all_formulas())
        for (auto dtype : dtypes()) {
            std::vector<std::vector<char>> memory(4);
            const Tensors inputs =
                formula.inputs([&] { return random({5, 38}, dtype); }, 38, dtype);
            Tensors shifted = inputs;
            for (size_t i = 0; i < inputs.size(); ++i) {
                if (!inputs[i].defined()) continue;
                memory[i].resize(inputs[i].nbytes() + 1);
                std::memcpy(memory[i].data() + 1, inputs[i].data_ptr(), inputs[i].nbytes());
                shifted[i] =
                    at::from_blob(memory[i].data() + 1, inputs[i].sizes(), inputs[i].options());
            }
            CHECK(formula.run(shifted)[0].equal(formula.run(inputs)[0]));
        }
}

TEST_CASE("a result does not depend on the number of threads") {
    at::manual_seed(9);
    const int threads = at::get_num_threads();
    for (const Formula& formula : all_formulas()) {
        const auto inputs =
            formula.inputs([] { return random({300, 516}, at::kFloat); }, 516, at::kFloat);
        const Tensor result = formula.run(inputs)[0];
        Tensors arguments{at::ones_like(result)};
        for (size_t i = 0; i < inputs.size() && (i < 2 || formula.backward_takes_bias); ++i)
            arguments.push_back(inputs[i]);
        Tensors gradients;
        if (!formula.backward.empty())
            gradients = call(formula.backward, arguments, formula.numbers);
        at::set_num_threads(threads == 1 ? 2 : 1);
        CHECK(formula.run(inputs)[0].equal(result));
        for (size_t i = 0; i < gradients.size(); ++i)
            CHECK(call(formula.backward, arguments, formula.numbers)[i].equal(gradients[i]));
        at::set_num_threads(threads);
    }
}

// On a GPU the layout decides how the threads share a row, and so how its sums are rounded.
TEST_CASE("a result does not depend on the layout", "[cpu]") {
    at::manual_seed(9);
    for (const Formula& formula : all_formulas()) {
        const auto inputs =
            formula.inputs([] { return random({300, 516}, at::kFloat); }, 516, at::kFloat);
        Tensors other = inputs;
        for (size_t i = 0; i < other.size(); ++i)
            if (formula.kinds[i] == Kind::values) other[i] = other[i].t().contiguous().t();
        CHECK(formula.run(other)[0].equal(formula.run(inputs)[0]));
    }
}

TEST_CASE("what the operators do not compute is refused with its reason") {
    const Tensor x = at::ones({3, 4}), weight = at::ones({4});
    CHECK(has(refusal([&] { norm(x, at::ones({5})); }), "[4] of x's last dimension, but has [5]"));
    CHECK(has(refusal([&] { norm(x, at::ones({1, 4})); }), "[1, 4]"));
    CHECK(has(refusal([&] { norm(at::ones({}), weight); }), "no dimension"));
    CHECK(has(refusal([&] { norm(x.to(at::kInt), weight); }), "x is int32"));
    CHECK(has(refusal([&] { norm(x, weight.to(at::kComplexFloat)); }), "complex64"));
    CHECK(has(refusal([&] { product(x, at::ones({4, 3})); }), "[3, 4] and [4, 3]"));
    CHECK(has(refusal([&] { product(x, at::ones({4})); }), "one shape"));
    CHECK(has(refusal([&] { product(x, x.to(at::kHalf)); }), "float32 but up is float16"));
    CHECK(has(refusal([&] { product(x.to(at::kBool), x); }), "gate is bool"));
    CHECK(has(refusal([&] { product(x, x.to(at::kMeta)); }), "different devices"));
    CHECK(has(refusal([&] { call("silu_and_mul", {at::ones({3, 5})}); }), "even last size"));
    CHECK(has(refusal([&] { call("silu_and_mul", {at::ones({})}); }), "even last size"));
    CHECK(has(refusal([&] { call("layer_norm", {x, weight, at::ones({4}, at::kDouble)}); }),
              "bias is float64 but x is float32"));
    CHECK(has(refusal([&] { call("layer_norm", {x.to(at::kHalf), weight, weight.to(at::kHalf)}); }),
              "weight is float32 but bias is float16"));
    CHECK(has(refusal([&] { call("add_rms_norm", {x, at::ones({4}), weight}); }), "one shape"));
    CHECK(has(refusal([&] { call("rms_norm_backward", {at::ones({4, 3}), x, weight}); }),
              "the result's shape [3, 4], but has [4, 3]"));
    CHECK(has(refusal([&] { call("silu_backward", {x.to(at::kHalf), x}); }),
              "grad is float16 but the result was float32"));
    CHECK(has(refusal([&] { call("silu_and_mul_backward", {x, x}); }), "[3, 2], but has [3, 4]"));
}

TEST_CASE("on the meta device shape and dtype are told") {
    const auto meta = at::TensorOptions().device(at::kMeta);
    for (const Formula& formula : all_formulas()) {
        const auto inputs =
            formula.inputs([] { return here(at::ones({2, 0, 8}, at::kBFloat16)); }, 8, at::kFloat);
        Tensors without = inputs;
        for (Tensor& tensor : without)
            if (tensor.defined()) tensor = at::empty(tensor.sizes(), meta.dtype(tensor.dtype()));
        const Tensors results = formula.run(without), real = formula.run(inputs);
        for (size_t i = 0; i < results.size(); ++i) {
            CHECK(results[i].is_meta());
            CHECK(results[i].scalar_type() == real[i].scalar_type());
            CHECK(results[i].sizes() == real[i].sizes());
        }
    }
}

// The instruction set is chosen once per process, so each needs its own.
TEST_CASE("every instruction set of this CPU is right, and an unknown one is refused", "[cpu]") {
    const auto run = [](const char* isa, const char* tests, bool streamed = false) {
        const pid_t child = fork();
        if (child == 0) {
            setenv("TWINKLE_PACK_ISA", isa, 1);
            if (streamed) setenv("TWINKLE_PACK_CACHE", "0", 1);
            execl("/proc/self/exe", "pack_tests", tests, "-r", "compact", nullptr);
            _exit(127);
        }
        int status = 0;
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    };
    CHECK(run("portable", "[isa]") == 0);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) {
        CHECK(run("avx2", "[isa]", true) == 0);
    }
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
        CHECK(run("avx512", "[isa]") == 0);
        CHECK(run("avx512", "[isa]", true) == 0);
    }
    if (__builtin_cpu_supports("avx512vnni")) CHECK(run("avx512vnni", "[isa]") == 0);
    if (__builtin_cpu_supports("amx-int8"))
        CHECK(run("avx512bf16", "[isa]") == 0);  // amx: this one
#endif
    CHECK(run("mmx", "[unknown-isa]") == 0);
}

TEST_CASE("an instruction set that is not there is refused", "[.][cpu][unknown-isa]") {
    CHECK(has(refusal([] { product(at::ones({3}), at::ones({3})); }), "TWINKLE_PACK_ISA=mmx"));
}
