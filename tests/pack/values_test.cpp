// Every operator and its gradients against PyTorch, over dtypes, sizes and layouts.
#include <cmath>
#include <random>

#include "formulas.h"

namespace {

using namespace pack;

std::vector<at::ScalarType> row_dtypes(const Formula& formula, at::ScalarType dtype) {
    if (formula.any_row) return dtypes();
    if (at::elementSize(dtype) == 2) return {dtype, at::kFloat};
    return {dtype};
}

// A norm of very few values consists of rounding errors.
int64_t least_size(const Formula& formula) {
    return formula.kinds.back() == Kind::values ? 1 : 5;
}

}  // namespace

TEST_CASE("elementwise operators are right for every dtype, width and layout", "[isa]") {
    at::manual_seed(1);
    for (const Formula& formula : elementwise_formulas())
        for (auto dtype : dtypes())
            for (int64_t n : {1, 7, 33, 130}) {
                const int64_t size = formula.even ? 2 * n : n;
                const Tensors views = layouts(size, dtype);
                for (size_t i = 0; i < views.size(); ++i) {
                    size_t next = i;
                    const auto view = [&] { return views[(next++ * 3 + i) % views.size()]; };
                    const Tensors inputs = formula.inputs(view, size, dtype);
                    check_right(formula, inputs);
                    const Tensor result = formula.original(inputs)[0];
                    check_gradients(formula, inputs, random(result.sizes(), dtype));
                }
            }
}

TEST_CASE("an infinite gradient is none where relu is constant", "[isa]") {
    for (auto dtype : dtypes()) {
        Tensor x = at::arange(-20, 21).to(dtype), grad = at::full({41}, INFINITY).to(dtype);
        x[5] = x[30] = NAN;
        grad[3] = grad[6] = grad[33] = NAN;
        const Tensor result = call("relu_backward", {here(grad), here(x)})[0].cpu();
        CHECK(at::allclose(result, at::threshold_backward(grad, x, 0), 0, 0, true));
    }
}

TEST_CASE("norms are right for every dtype, width and layout", "[isa]") {
    at::manual_seed(2);
    for (const Formula& formula : norm_formulas())
        for (auto dtype : dtypes())
            for (int64_t n : {5, 33, 130}) {
                const Tensors views = layouts(n, dtype);
                for (size_t i = 0; i < views.size(); ++i) {
                    // Rows of one value have a variance of zero: nothing but rounding.
                    if (i == 9) continue;
                    size_t next = i;
                    const auto view = [&] { return views[next++ % 9]; };
                    const Tensors inputs = formula.inputs(view, n, dtype);
                    check_right(formula, inputs);
                    if (formula.backward.empty()) continue;
                    check_gradients(formula, inputs, random({4, 6, n}, dtype));
                }
            }
}

TEST_CASE("weights of other dtypes and strides: results are promoted as PyTorch's") {
    at::manual_seed(3);
    for (const Formula& formula : norm_formulas())
        for (auto dtype : dtypes())
            for (auto row : row_dtypes(formula, dtype)) {
                Tensors inputs = formula.inputs([&] { return random({5, 131}, dtype); }, 131, row);
                check_right(formula, inputs);
                for (size_t i = 0; i < inputs.size(); ++i)
                    if (formula.kinds[i] == Kind::row)
                        inputs[i] = random({131, 2}, row).select(1, 1);
                check_right(formula, inputs);
                if (formula.backward.empty()) continue;
                const auto result = formula.original(inputs)[0].scalar_type();
                check_gradients(formula, inputs, random({5, 131}, result));
            }
}

TEST_CASE("random shapes and strides") {
    std::mt19937 generator(10);
    at::manual_seed(10);
    const auto up_to = [&](int64_t most) {
        return std::uniform_int_distribution<int64_t>(1, most)(generator);
    };
    for (const auto* formulas : {&elementwise_formulas(), &norm_formulas()})
        for (const Formula& formula : *formulas)
            for (int round = 0; round < 16; ++round) {
                const auto dtype = dtypes()[static_cast<size_t>(round % 4)];
                std::vector<int64_t> shape;
                for (int64_t d = up_to(4); d > 0; --d) shape.push_back(up_to(d == 1 ? 90 : 9));
                shape.back() = std::max(shape.back(), least_size(formula));
                if (formula.even) shape.back() *= 2;
                std::vector<int64_t> order(shape.size());
                std::iota(order.begin(), order.end(), 0);
                if (round % 3 == 0) std::shuffle(order.begin(), order.end(), generator);
                const auto view = [&] {
                    std::vector<int64_t> larger;
                    for (int64_t d : order)
                        larger.push_back(shape[static_cast<size_t>(d)] * up_to(2) + up_to(3));
                    std::vector<int64_t> back(order.size());
                    for (size_t i = 0; i < order.size(); ++i)
                        back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
                    Tensor tensor = random(larger, dtype).permute(back);
                    for (int64_t d = 0; d < tensor.dim(); ++d) {
                        const int64_t size = shape[static_cast<size_t>(d)];
                        const int64_t step = (tensor.size(d) - 1) / size > 1 ? 2 : 1;
                        tensor = tensor.slice(d, 1).slice(d, 0, size * step, step);
                    }
                    return tensor;
                };
                const Tensors inputs = formula.inputs(view, shape.back(), dtype);
                check_right(formula, inputs);
                const auto result = formula.original(inputs)[0];
                if (!formula.backward.empty())
                    check_gradients(formula, inputs, random(result.sizes(), dtype));
            }
}

TEST_CASE("activations over the whole range of their input", "[isa]") {
    for (const Formula& formula : elementwise_formulas())
        for (auto dtype : dtypes()) {
            if (formula.kinds.size() > 1 || formula.even) continue;
            const Tensor x = here(at::linspace(-150, 150, 100003, at::kDouble).to(dtype));
            check_right(formula, {x});
            check_right(formula, {x * 0.05});
            check_gradients(formula, {x * 0.05}, at::ones_like(x));
            const Tensor slope = call(formula.backward, {at::ones_like(x), x})[0];
            CHECK(slope.isfinite().all().item<bool>());
        }
}

TEST_CASE("silu is right relative to each value") {
    for (auto dtype : dtypes()) {
        const Tensor x = here(at::linspace(-120, 120, 100003, at::kDouble).to(dtype));
        const Tensor exact = at::silu(x.to(at::kDouble));
        // Only where it is a normal number of float32 and of the dtype.
        const double smallest = dtype == at::kHalf ? 6.2e-5 : 1e-36;
        const Tensor error = ((call("silu", {x})[0].to(at::kDouble) - exact) / exact).abs();
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
    for (auto dtype : dtypes()) {
        // PyTorch's own gelu of infinity depends on the length of the row.
        std::vector<double> values{0.0, -0.0, -inf, nan, 1e-40, -1e-40, 1e4, -1e4, 6e-8, -88.5};
        for (int i = 0; i < 3; ++i) values.insert(values.end(), values.begin(), values.end());
        const Tensor x = here(at::tensor(values, at::kDouble).to(dtype));
        const Tensor half = at::full_like(x, 0.5);
        for (const Formula& formula : elementwise_formulas()) {
            Tensors inputs{x};
            if (formula.kinds.size() == 2) inputs.push_back(half);
            if (formula.even) inputs[0] = at::cat({x, half});
            INFO(formula.op << " " << dtype);
            // The smallest half is 6e-8.
            CHECK(at::allclose(formula.run(inputs)[0], formula.original(inputs)[0], 1e-2,
                               dtype == at::kHalf ? 6.1e-8 : 1e-30, true));
        }
        Tensor rows = random({8, 70}, dtype);
        rows[1][3] = nan;
        rows[2][69] = inf;
        rows[3].zero_();
        rows[4].slice(0, 0, 70, 2).fill_(-1e4);
        rows[5].mul_(1e-4);
        for (const Formula& formula : norm_formulas()) {
            const Tensors inputs = formula.inputs([&] { return rows; }, 70, dtype);
            INFO(formula.op << " " << dtype);
            CHECK(at::allclose(formula.run(inputs)[0], formula.original(inputs)[0], 2e-2, 1e-2,
                               true));
        }
    }
    // Squares that overflow float32 give zero there, not infinity or NaN.
    const Tensor large = here(at::full({2, 37}, 1e25, at::kFloat));
    CHECK(call("rms_norm", {large, here(at::ones({37}))})[0].eq(0).all().item<bool>());
}

// On a GPU several blocks share such rows, and warps get unequal parts of them.
TEST_CASE("few rows that are long", "[isa]") {
    at::manual_seed(7);
    const std::vector<std::vector<int64_t>> shapes{{2, 4096},  {4, 5128},  {2, 11008}, {16, 8200},
                                                   {7, 16384}, {2, 32776}, {3, 40000}, {1, 512},
                                                   {2, 1024},  {2, 16384}, {2, 32768}, {1, 11008},
                                                   {1, 22016}, {1, 32768}, {1, 33000}, {4, 16384}};
    const auto check = [](const Formula& formula, const std::vector<int64_t>& shape,
                          at::ScalarType dtype, at::ScalarType row) {
        check_right(formula,
                    formula.inputs([&] { return random(shape, dtype); }, shape.back(), row));
    };
    for (const Formula& formula : norm_formulas()) {
        for (auto dtype : {at::kFloat, at::kBFloat16, at::kHalf})
            for (const auto& shape : shapes) check(formula, shape, dtype, dtype);
        for (int64_t n : {512, 4096, 11008, 32768})
            check(formula, {2, n}, at::kBFloat16, at::kFloat);
    }
}

// On a GPU the number of 16-byte vectors in a row decides how many a thread holds, and whether
// weights with them.
TEST_CASE("many rows that are long") {
    at::manual_seed(8);
    const int64_t rows = here(at::zeros({1})).is_cuda() ? 1024 : 66;
    const auto check = [&](const Formula& formula, int64_t n, at::ScalarType dtype,
                           at::ScalarType row) {
        check_right(formula, formula.inputs([&] { return random({rows, n}, dtype); }, n, row));
    };
    for (const Formula& formula : norm_formulas()) {
        for (int64_t vectors : {20, 40, 300, 577, 1540, 2310, 2820})
            check(formula, vectors * 4, at::kFloat, at::kFloat);
        for (int64_t vectors : {20, 40, 300, 577, 1030, 2310})
            check(formula, vectors * 8, at::kBFloat16, at::kBFloat16);
        for (int64_t vectors : {300, 577}) {
            check(formula, vectors * 8, at::kHalf, at::kHalf);
            check(formula, vectors * 8, at::kBFloat16, at::kFloat);
        }
    }
}

Verdict judge_layer_norm(const Tensor& x, const Tensor& weight) {
    const int64_t n = x.size(-1);
    const Tensor wide = weight.to(at::kDouble);
    return judge(call("layer_norm", {x, weight, weight})[0], at::layer_norm(x, {n}, weight, weight),
                 at::layer_norm(x.to(at::kDouble), {n}, wide, wide), norm_float_units);
}

TEST_CASE("a large mean costs layer_norm no digits", "[isa]") {
    at::manual_seed(4);
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{7, 300}, {1, 11008}, {40, 2048}, {1, 40000}}) {
        const int64_t n = shape.back();
        const Tensor x = random(shape, at::kFloat, 1) + 1000, weight = random({n}, at::kFloat);
        const auto verdict = judge_layer_norm(x, weight);
        INFO(n << ": " << verdict.text);
        CHECK(verdict.right);
    }
}

// If float32 cannot represent the mean, the variance about it must account for the difference.
TEST_CASE("layer_norm of a mean between two numbers") {
    for (double level : {1000.0, 1e5, 1e6})
        for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1, 512},
                                                  {1, 4096},
                                                  {80, 4096},
                                                  {70, 2176},
                                                  {3, 5000},
                                                  {1, 16384}}) {
            const int64_t n = shape.back();
            Tensor x = here(at::full(shape, level, at::kFloat));
            x.slice(1, 1, n, 2).add_(level / 16e6);
            const auto verdict = judge_layer_norm(x, here(at::ones({n}, at::kFloat)));
            INFO(level << ", " << shape[0] << " x " << n << ": " << verdict.text);
            CHECK(verdict.right);
        }
}

// Threads first sum about their own means.
TEST_CASE("layer_norm of rows whose parts have other means") {
    at::manual_seed(8);
    for (auto dtype : dtypes())
        for (int64_t n : {512, 4096, 11008, 40000}) {
            Tensor x = random({6, n}, dtype) + 30;
            x.slice(1, 0, n / 8).add_(1000);
            x.slice(1, n / 2, n / 2 + 8).sub_(5000);
            const Tensor weight = random({n}, dtype);
            const auto verdict = judge_layer_norm(x, weight);
            INFO(dtype << " " << n << ": " << verdict.text);
            CHECK(verdict.right);
        }
}

TEST_CASE("layer_norm of rows whose first part has another mean") {
    at::manual_seed(11);
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{6, 6144}, {80, 6144}, {6, 1536}, {80, 4096}, {80, 16384}}) {
        const int64_t n = shape.back();
        Tensor x = random(shape, at::kFloat);
        x.slice(1, 0, 128).add_(1000);
        const Tensor weight = random({n}, at::kFloat);
        const auto verdict = judge_layer_norm(x, weight);
        INFO(shape[0] << " x " << n << ": " << verdict.text);
        CHECK(verdict.right);
    }
}

TEST_CASE("a row of layer_norm depends on no other row") {
    at::manual_seed(12);
    for (auto dtype : dtypes())
        for (int64_t n : {32, 64, 256}) {
            const Tensor x = random({64, n}, dtype), weight = random({n}, dtype);
            Tensor other = x.clone();
            other.slice(0, 1, 64, 2).slice(1, 0, 4).add_(100);
            const Tensor one = call("layer_norm", {x, weight, weight})[0];
            const Tensor two = call("layer_norm", {other, weight, weight})[0];
            INFO(dtype << " " << n);
            CHECK(at::equal(one.slice(0, 0, 64, 2), two.slice(0, 0, 64, 2)));
        }
}

TEST_CASE("layer_norm of a row with huge first numbers") {
    at::manual_seed(13);
    for (auto dtype : {at::kFloat, at::kBFloat16})
        for (const std::vector<int64_t>& shape :
             {std::vector<int64_t>{80, 512}, {80, 4096}, {80, 5000}, {1, 4096}, {1, 8192}})
            for (double huge : {1e18, 5e18}) {
                const int64_t n = shape.back();
                Tensor x = random(shape, dtype);
                x.slice(1, 0, 8).fill_(huge);
                const Tensor weight = here(at::ones({n}, dtype)),
                             bias = here(at::zeros({n}, dtype));
                const Tensor wide = weight.to(at::kDouble);
                const auto exact =
                    at::layer_norm(x.to(at::kDouble), {n}, wide, at::zeros_like(wide));
                const Tensor off =
                    (call("layer_norm", {x, weight, bias})[0].to(at::kDouble) - exact).abs().max();
                INFO(dtype << " " << shape[0] << " x " << n);
                CHECK(off.item<double>() < 0.01 * exact.max().item<double>());
            }
}

// On a GPU threads sum about numbers of their own part. With 100, 5000 and 12004 the threads of a
// warp do not all have equally many.
TEST_CASE("layer_norm of rows whose first numbers are far from the others") {
    at::manual_seed(10);
    for (auto dtype : dtypes())
        for (int64_t n : {64, 100, 512, 4096, 5000, 11008, 12004, 40000})
            for (double far : {3.0, 100.0, 20000.0})
                for (int64_t every : {int64_t{128}, int64_t{1024}, n}) {
                    if (n % every != 0) continue;
                    Tensor x = random({n > 4096 ? 3 : 80, n}, dtype);
                    x.view({x.size(0), -1, every}).slice(2, 0, 8).add_(far);
                    const Tensor weight = random({n}, dtype);
                    const auto verdict = judge_layer_norm(x, weight);
                    INFO(dtype << " " << n << ", " << far << " every " << every << ": "
                               << verdict.text);
                    CHECK(verdict.right);
                }
}

TEST_CASE("layer_norm of equal numbers is the bias, and of what overflows it too") {
    at::manual_seed(9);
    for (auto dtype : dtypes())
        for (int64_t n : {24, 224, 896, 3584, 4096, 11008})
            for (int64_t rows : {1, 600}) {
                const Tensor weight = random({n}, dtype), bias = random({n}, dtype);
                for (double number : {1000.0, 24576.0}) {
                    const Tensor x = here(at::full({rows, n}, number, dtype));
                    INFO(dtype << " " << rows << " x " << n << ", " << number);
                    CHECK(at::equal(call("layer_norm", {x, weight, bias})[0], bias.expand_as(x)));
                }
                if (dtype != at::kBFloat16) continue;
                const Tensor x = random({rows, n}, dtype) * 1e20;
                INFO(rows << " x " << n << " of 1e20");
                CHECK(at::equal(call("layer_norm", {x, weight, bias})[0], bias.expand_as(x)));
            }
}

TEST_CASE("half precision equals the original to the bit nearly everywhere") {
    at::manual_seed(5);
    for (auto dtype : {at::kBFloat16, at::kHalf}) {
        const Tensor x = random({256, 512}, dtype), weight = random({512}, dtype);
        for (const Formula& formula : norm_formulas()) {
            if (formula.op != "rms_norm" || formula.kinds.back() != Kind::row) continue;
            // No model adds an offset in half precision.
            if (formula.numbers[1].toDouble() != 0 && !formula.numbers[2].toBool()) continue;
            const Tensor differ = formula.run({x, weight})[0] != formula.original({x, weight})[0];
            INFO(formula.numbers[1] << " " << formula.numbers[2]);
            CHECK(differ.sum().item<int64_t>() < differ.numel() / 1000);
        }
    }
}
