// The bundled pack's operators against PyTorch.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <limits>
#include <random>

#include "pack_library.h"

namespace {

using at::Tensor;

const at::ScalarType dtypes[] = {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble};

Tensor random(at::IntArrayRef shape, at::ScalarType dtype, double scale = 3) {
    return (at::randn(shape, at::kDouble) * scale).to(dtype);
}

void check_rms_norm(const Tensor& x, const Tensor& weight, double eps = 1e-6) {
    const auto verdict =
        pack::judge(pack::rms_norm(x, weight, eps), pack::original_rms_norm(x, weight, eps),
                    pack::exact_rms_norm(x, weight, eps));
    INFO(x.sizes() << " " << x.strides() << " " << x.scalar_type() << ", weight "
                   << weight.scalar_type() << ": " << verdict.text);
    CHECK(verdict.right);
}

void check_silu_mul(const Tensor& gate, const Tensor& up) {
    const auto verdict = pack::judge(pack::silu_mul(gate, up), pack::original_silu_mul(gate, up),
                                     pack::exact_silu_mul(gate, up));
    INFO(gate.sizes() << " " << gate.strides() << " " << up.strides() << " " << gate.scalar_type()
                      << ": " << verdict.text);
    CHECK(verdict.right);
}

// Views of one shape, [4, 6, n], as a model may produce them; each as it lies, without a copy.
std::vector<Tensor> layouts(int64_t n, at::ScalarType dtype) {
    return {
        random({4, 6, n}, dtype),                                    // contiguous
        random({4, 6, 2 * n}, dtype).slice(2, n),                    // right half of each row
        random({4, 6, 2 * n + 1}, dtype).slice(2, 1, n + 1),         // rows at odd addresses
        random({8, 9, n}, dtype).slice(0, 1, 8, 2).slice(1, 2, 8),   // every second, some rows
        random({6, 4, n}, dtype).transpose(0, 1),                    // rows in another order
        random({4, n, 6}, dtype).transpose(1, 2),                    // last dimension strided
        random({n, 6, 4}, dtype).permute({2, 1, 0}),                 // reversed
        random({4, 6, 2 * n}, dtype).slice(2, 0, 2 * n, 2),          // every second element
        random({1, 6, n}, dtype).expand({4, 6, n}),                  // one row many times
        random({4, 6, 1}, dtype).expand({4, 6, n}),                  // one element many times
        random({1 + 4 * 6 * n}, dtype).slice(0, 1).view({4, 6, n}),  // storage offset 1
    };
}

// What a call is refused with; empty if it is not.
template <class Call>
std::string refusal(Call call) {
    try {
        call();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

bool has(const std::string& text, const std::string& part) {
    INFO(text);
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("rms_norm is right for every dtype, width and layout", "[isa]") {
    at::manual_seed(1);
    for (auto dtype : dtypes)
        for (int64_t n : {1, 2, 7, 15, 16, 17, 33, 63, 64, 65, 100, 127, 257})
            for (const Tensor& x : layouts(n, dtype)) check_rms_norm(x, random({n}, dtype));
}

TEST_CASE("rms_norm promotes as PyTorch does", "[isa]") {
    at::manual_seed(2);
    for (auto x_dtype : dtypes)
        for (auto weight_dtype : dtypes)
            for (int64_t n : {5, 64, 131})
                check_rms_norm(random({3, n}, x_dtype), random({n}, weight_dtype));
}

TEST_CASE("rms_norm takes a weight of any stride", "[isa]") {
    at::manual_seed(3);
    for (auto dtype : dtypes) {
        check_rms_norm(random({3, 40}, dtype), random({40, 3}, dtype).select(1, 1));
        check_rms_norm(random({3, 40}, dtype), random({1}, dtype).expand({40}));
    }
}

TEST_CASE("rms_norm in half precision equals the original to the bit nearly everywhere", "[isa]") {
    at::manual_seed(4);
    for (auto dtype : {at::kBFloat16, at::kHalf}) {
        const Tensor x = random({256, 512}, dtype), weight = random({512}, dtype);
        const Tensor differ =
            pack::rms_norm(x, weight, 1e-5) != pack::original_rms_norm(x, weight, 1e-5);
        CHECK(differ.sum().item<int64_t>() < differ.numel() / 1000);
    }
}

TEST_CASE("silu_mul is right for every dtype, width and layout", "[isa]") {
    at::manual_seed(5);
    for (auto dtype : dtypes)
        for (int64_t n : {1, 2, 7, 16, 17, 33, 64, 65, 127, 257}) {
            const auto gates = layouts(n, dtype), ups = layouts(n, dtype);
            for (size_t i = 0; i < gates.size(); ++i) {
                check_silu_mul(gates[i], ups[i]);
                check_silu_mul(gates[i], ups[(i * 3 + 1) % ups.size()]);
            }
        }
}

TEST_CASE("silu_mul over the whole range of its input", "[isa]") {
    for (auto dtype : dtypes) {
        const Tensor gate = at::linspace(-120, 120, 100003, at::kDouble).to(dtype);
        const Tensor one = at::ones_like(gate);
        check_silu_mul(gate, one);
        // Relative to each value, where that is a normal number of float32 and of the dtype.
        const Tensor exact = pack::exact_silu_mul(gate, one);
        const double smallest = dtype == at::kHalf ? 6.2e-5 : 1e-36;
        const Tensor error = ((pack::silu_mul(gate, one).to(at::kDouble) - exact) / exact).abs();
        const double worst = error.index({exact.abs() > smallest}).max().item<double>();
        const double epsilon = dtype == at::kDouble     ? 2.2e-16
                               : dtype == at::kFloat    ? 1.2e-7
                               : dtype == at::kBFloat16 ? 3.95e-3  // half a unit
                                                        : 4.95e-4;
        INFO(dtype << ": " << worst / epsilon);
        CHECK(worst <= (dtype == at::kDouble || dtype == at::kFloat ? 3 : 1) * epsilon);
    }
}

TEST_CASE("values that are no numbers, infinite, huge and tiny are as in PyTorch", "[isa]") {
    const double inf = std::numeric_limits<double>::infinity();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (auto dtype : dtypes) {
        std::vector<double> values{0.0,    -0.0, inf,  -inf, nan,   1e-40,
                                   -1e-40, 1e4,  -1e4, 6e-8, -88.5, 88.5};
        for (int i = 0; i < 3; ++i) values.insert(values.end(), values.begin(), values.end());
        const Tensor gate = at::tensor(values, at::kDouble).to(dtype);
        const Tensor up = at::full_like(gate, 0.5);
        CHECK(at::allclose(pack::silu_mul(gate, up), pack::original_silu_mul(gate, up), 1e-2, 1e-30,
                           true));
        CHECK(at::allclose(pack::silu_mul(up, gate), pack::original_silu_mul(up, gate), 1e-2, 1e-30,
                           true));

        Tensor x = random({8, 70}, dtype);
        const Tensor weight = random({70}, dtype);
        x[1][3] = nan;
        x[2][69] = inf;
        x[3].zero_();
        x[4].fill_(-1e4);
        x[5].mul_(1e-4);
        const Tensor result = pack::rms_norm(x, weight, 1e-6);
        CHECK(at::allclose(result, pack::original_rms_norm(x, weight, 1e-6), 2e-2, 1e-30, true));
    }
    // Squares that overflow float32 give zero there, not infinity or NaN.
    const Tensor large = at::full({2, 37}, 1e25, at::kFloat);
    CHECK(pack::rms_norm(large, at::ones({37}), 1e-6).eq(0).all().item<bool>());
}

TEST_CASE("empty tensors, one element and no dimension", "[isa]") {
    for (auto dtype : dtypes) {
        for (const std::vector<int64_t>& shape :
             std::vector<std::vector<int64_t>>{{0, 8}, {3, 0, 8}, {0}, {3, 0}}) {
            const Tensor x = at::empty(shape, dtype);
            const Tensor weight = at::ones({shape.back()}, dtype);
            CHECK(pack::rms_norm(x, weight, 1e-6).sizes() == shape);
            CHECK(pack::silu_mul(x, x).sizes() == shape);
        }
        check_rms_norm(random({1}, dtype), random({1}, dtype));
        check_silu_mul(random({1}, dtype), random({1}, dtype));
        check_silu_mul(random({}, dtype), random({}, dtype));
    }
}

TEST_CASE("rows of any length, and many of them, over all threads", "[isa]") {
    at::manual_seed(6);
    for (auto dtype : {at::kFloat, at::kBFloat16}) {
        check_rms_norm(random({2, 1000003}, dtype), random({1000003}, dtype));
        check_rms_norm(random({100003, 3}, dtype), random({3}, dtype));
        check_rms_norm(random({513, 4096}, dtype), random({4096}, dtype));
        check_silu_mul(random({1000003}, dtype), random({1000003}, dtype));
        check_silu_mul(random({100003, 6}, dtype).slice(1, 3), random({100003, 3}, dtype));
        check_silu_mul(random({129, 11009}, dtype).slice(1, 1), random({129, 11008}, dtype));
    }
}

TEST_CASE("more dimensions than can be followed, and sizes of one", "[isa]") {
    at::manual_seed(7);
    for (auto dtype : dtypes) {
        const Tensor many = random({2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 5}, dtype);
        const Tensor every_second = many.slice(1, 0, 3, 2)
                                        .slice(3, 0, 3, 2)
                                        .slice(5, 0, 3, 2)
                                        .slice(7, 0, 3, 2)
                                        .slice(9, 0, 3, 2);
        check_rms_norm(every_second.permute({10, 8, 6, 4, 2, 0, 9, 7, 5, 3, 1, 11}),
                       random({5}, dtype));
        check_silu_mul(every_second, every_second.flip(0));
        check_rms_norm(random({1, 7, 1, 9, 1, 5}, dtype).transpose(1, 3), random({5}, dtype));
    }
}

TEST_CASE("elements at addresses that their type does not divide", "[isa]") {
    at::manual_seed(8);
    for (auto dtype : dtypes) {
        const Tensor x = random({5, 37}, dtype), weight = random({37}, dtype);
        const auto shifted = [](const Tensor& tensor, std::vector<char>& memory) {
            memory.resize(tensor.nbytes() + 1);
            std::memcpy(memory.data() + 1, tensor.data_ptr(), tensor.nbytes());
            return at::from_blob(memory.data() + 1, tensor.sizes(), tensor.options());
        };
        std::vector<char> first, second;
        CHECK(pack::rms_norm(shifted(x, first), shifted(weight, second), 1e-6)
                  .equal(pack::rms_norm(x, weight, 1e-6)));
        CHECK(pack::silu_mul(shifted(x, first), x).equal(pack::silu_mul(x, x)));
    }
}

TEST_CASE("a result does not depend on the layout or on the number of threads", "[isa]") {
    at::manual_seed(9);
    const int threads = at::get_num_threads();
    const Tensor x = random({300, 515}, at::kFloat), weight = random({515}, at::kFloat);
    const Tensor norm = pack::rms_norm(x, weight, 1e-6), product = pack::silu_mul(x, x);
    at::set_num_threads(threads == 1 ? 2 : 1);
    CHECK(pack::rms_norm(x, weight, 1e-6).equal(norm));
    CHECK(pack::silu_mul(x, x).equal(product));
    at::set_num_threads(threads);
    CHECK(pack::rms_norm(x.t().contiguous().t(), weight, 1e-6).equal(norm));
}

TEST_CASE("random shapes and strides", "[isa]") {
    std::mt19937 generator(10);
    at::manual_seed(10);
    const auto up_to = [&](int64_t most) {
        return std::uniform_int_distribution<int64_t>(1, most)(generator);
    };
    for (int round = 0; round < 300; ++round) {
        const auto dtype = dtypes[round % 4];
        std::vector<int64_t> shape;
        for (int64_t d = up_to(4); d > 0; --d) shape.push_back(up_to(d == 1 ? 90 : 9));
        const auto view = [&] {
            std::vector<int64_t> larger = shape, order(shape.size());
            for (auto& size : larger) size = size * up_to(2) + up_to(3);
            Tensor tensor = random(larger, dtype);
            for (size_t d = 0; d < shape.size(); ++d) {
                const int64_t step = (larger[d] - 1) / shape[d] > 1 ? 2 : 1;
                tensor = tensor.slice(static_cast<int64_t>(d), 1)
                             .slice(static_cast<int64_t>(d), 0, shape[d] * step, step);
            }
            return tensor;
        };
        check_silu_mul(view(), view());
        const Tensor x = view();
        check_rms_norm(x, random({x.size(-1)}, dtype));
    }
}

TEST_CASE("what the operators do not compute is refused with its reason") {
    const Tensor x = at::ones({3, 4}), weight = at::ones({4});
    CHECK(has(refusal([&] { pack::rms_norm(x, at::ones({5}), 1e-6); }),
              "[4] of x's last dimension, but has [5]"));
    CHECK(has(refusal([&] { pack::rms_norm(x, at::ones({1, 4}), 1e-6); }), "[1, 4]"));
    CHECK(has(refusal([&] { pack::rms_norm(at::ones({}), weight, 1e-6); }), "no dimension"));
    CHECK(has(refusal([&] { pack::rms_norm(x.to(at::kInt), weight, 1e-6); }), "x is int32"));
    CHECK(
        has(refusal([&] { pack::rms_norm(x, weight.to(at::kComplexFloat), 1e-6); }), "complex64"));
    CHECK(has(refusal([&] { pack::silu_mul(x, at::ones({4, 3})); }), "[3, 4] and [4, 3]"));
    CHECK(has(refusal([&] { pack::silu_mul(x, at::ones({4})); }), "one shape"));
    CHECK(has(refusal([&] { pack::silu_mul(x, x.to(at::kHalf)); }), "float32 but up is float16"));
    CHECK(has(refusal([&] { pack::silu_mul(x.to(at::kBool), x); }), "gate is bool"));
    CHECK(has(refusal([&] { pack::silu_mul(x, x.to(at::kMeta)); }), "different devices"));
}

TEST_CASE("on the meta device shape and dtype are told") {
    const auto meta = at::TensorOptions().device(at::kMeta);
    const Tensor result =
        pack::rms_norm(at::empty({2, 0, 8}, meta.dtype(at::kBFloat16)), at::empty({8}, meta), 1e-6);
    CHECK(result.is_meta());
    CHECK(result.scalar_type() == at::kFloat);
    CHECK((result.sizes() == at::IntArrayRef{2, 0, 8}));
}

// The instruction set is chosen once per process, so each has a process of its own.
TEST_CASE("every instruction set of this CPU is right, and an unknown one is refused") {
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
        CHECK(run("avx2", "[isa]") == 0);
        CHECK(run("avx2", "[isa]", true) == 0);
    }
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
        CHECK(run("avx512", "[isa]") == 0);
        CHECK(run("avx512", "[isa]", true) == 0);
    }
#endif
    CHECK(run("mmx", "[unknown-isa]") == 0);
}

TEST_CASE("an instruction set that is not there is refused", "[.][unknown-isa]") {
    CHECK(
        has(refusal([] { pack::silu_mul(at::ones({3}), at::ones({3})); }), "TWINKLE_PACK_ISA=mmx"));
}
