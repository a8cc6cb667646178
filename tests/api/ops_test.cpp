// The bundled kernels as functions: both implementations compute the same, forward and backward.

#include "twinkle/tuning.h"

#include "api/package.h"
#include "error_code.h"

#include <functional>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using tests::code_of;

namespace {

using Tensors = std::vector<at::Tensor>;

struct Case {
    std::string operation;
    std::function<Tensors(const Tensors&)> call;
    Tensors inputs;
    std::size_t differentiable;  // so many of the first inputs have gradients
};

using Maybe = std::optional<at::Tensor>;

template <class... T>
Tensors list(const std::tuple<T...>& results) {
    return std::apply([](const T&... each) { return Tensors{each...}; }, results);
}

std::vector<Case> cases(at::ScalarType dtype) {
    const auto x = [&] { return torch::randn({3, 5, 16}).to(dtype); };
    const auto row = [&] { return torch::randn({16}).to(dtype); };
    std::vector<Case> all;
    const auto one = [&](const char* name, at::Tensor (*function)(const at::Tensor&)) {
        all.push_back(
            {name, [=](const Tensors& in) { return Tensors{function(in[0])}; }, {x()}, 1});
    };
    one("silu", ops::silu);
    one("gelu", ops::gelu);
    one("gelu_tanh", ops::gelu_tanh);
    one("gelu_new", ops::gelu_new);
    one("gelu_fast", ops::gelu_fast);
    one("gelu_quick", ops::gelu_quick);
    one("relu", ops::relu);
    one("silu_and_mul", ops::silu_and_mul);
    one("gelu_and_mul", ops::gelu_and_mul);
    one("gelu_tanh_and_mul", ops::gelu_tanh_and_mul);
    one("mul_and_silu", ops::mul_and_silu);
    const auto gate = [&](const char* name,
                          at::Tensor (*function)(const at::Tensor&, const at::Tensor&)) {
        all.push_back({name,
                       [=](const Tensors& in) { return Tensors{function(in[0], in[1])}; },
                       {x(), x()},
                       2});
    };
    gate("silu_mul", ops::silu_mul);
    gate("gelu_mul", ops::gelu_mul);
    gate("gelu_tanh_mul", ops::gelu_tanh_mul);
    for (const bool round_last : {false, true}) {
        all.push_back({"rms_norm",
                       [=](const Tensors& in) {
                           return Tensors{ops::rms_norm(in[0], in[1], 1e-5, 1, round_last)};
                       },
                       {x(), row()},
                       2});
    }
    all.push_back({"rms_norm",
                   [](const Tensors& in) { return Tensors{ops::rms_norm(in[0], std::nullopt)}; },
                   {x()},
                   1});
    all.push_back({"layer_norm",
                   [](const Tensors& in) { return Tensors{ops::layer_norm(in[0], in[1], in[2])}; },
                   {x(), row(), row()},
                   3});
    all.push_back(
        {"layer_norm",
         [](const Tensors& in) { return Tensors{ops::layer_norm(in[0], std::nullopt, in[1])}; },
         {x(), row()},
         2});
    all.push_back({"add_rms_norm",
                   [](const Tensors& in) { return list(ops::add_rms_norm(in[0], in[1], in[2])); },
                   {x(), x(), row()},
                   3});
    all.push_back(
        {"add_layer_norm",
         [](const Tensors& in) { return list(ops::add_layer_norm(in[0], in[1], in[2], in[3])); },
         {x(), x(), row(), row()},
         4});
    for (const std::int64_t count : {8, 16}) {
        for (const bool interleaved : {false, true}) {
            all.push_back({"apply_rotary",
                           [=](const Tensors& in) {
                               return Tensors{ops::apply_rotary(in[0], in[1], in[2], interleaved)};
                           },
                           {x(), torch::randn({3, 5, count}).to(dtype),
                            torch::randn({3, 5, count}).to(dtype)},
                           1});
        }
    }
    return all;
}

// Layers of other sizes than powers of two, with bias and without.
std::vector<Case> linear_cases(at::ScalarType dtype) {
    const at::Tensor x = torch::randn({3, 5, 24}).to(dtype);
    const auto weight = [&](std::int64_t columns) { return torch::randn({columns, 24}).to(dtype); };
    const auto bias = [&](std::int64_t columns) { return torch::randn({columns}).to(dtype); };
    std::vector<Case> all;
    const auto one = [&](const char* name,
                         at::Tensor (*function)(const at::Tensor&, const at::Tensor&,
                                                const Maybe&)) {
        all.push_back({name,
                       [=](const Tensors& in) { return Tensors{function(in[0], in[1], in[2])}; },
                       {x, weight(20), bias(20)},
                       3});
        all.push_back({name,
                       [=](const Tensors& in) { return Tensors{function(in[0], in[1], {})}; },
                       {x, weight(20)},
                       2});
    };
    one("linear", ops::linear);
    one("linear_silu", ops::linear_silu);
    one("linear_gelu", ops::linear_gelu);
    one("linear_gelu_tanh", ops::linear_gelu_tanh);
    one("linear_relu", ops::linear_relu);
    const auto gate = [&](const char* name,
                          at::Tensor (*function)(const at::Tensor&, const at::Tensor&, const Maybe&,
                                                 const at::Tensor&, const Maybe&)) {
        all.push_back(
            {name,
             [=](const Tensors& in) { return Tensors{function(in[0], in[1], in[3], in[2], {})}; },
             {x, weight(20), weight(20), bias(20)},
             4});
    };
    gate("linear_silu_mul", ops::linear_silu_mul);
    gate("linear_gelu_mul", ops::linear_gelu_mul);
    gate("linear_gelu_tanh_mul", ops::linear_gelu_tanh_mul);
    all.push_back(
        {"linear2",
         [](const Tensors& in) { return list(ops::linear2(in[0], in[1], {}, in[2], in[3])); },
         {x, weight(20), weight(7), bias(7)},
         4});
    all.push_back({"linear3",
                   [](const Tensors& in) {
                       return list(ops::linear3(in[0], in[1], in[4], in[2], {}, in[3], {}));
                   },
                   {x, weight(20), weight(7), weight(1), bias(20)},
                   5});
    return all;
}

std::vector<Case> image_cases(at::ScalarType dtype) {
    const auto image = [&](std::int64_t channels, std::int64_t size) {
        return torch::randn({2, channels, size, size}).to(dtype);
    };
    const auto row = [&](std::int64_t channels) { return torch::rand({channels}).to(dtype) + 0.5; };
    std::vector<Case> all;
    for (const std::int64_t groups : {1, 6}) {
        all.push_back({"conv2d",
                       [=](const Tensors& in) {
                           return Tensors{ops::conv2d(in[0], in[1], in[2],
                                                      {.stride = {2, 1},
                                                       .padding = {1, 1},
                                                       .groups = groups,
                                                       .activation = ops::ImageActivation::relu})};
                       },
                       {image(6, 9), torch::randn({12, 6 / groups, 3, 3}).to(dtype), row(12)},
                       3});
    }
    for (const bool residual_last : {false, true}) {
        all.push_back({"conv2d",
                       [=](const Tensors& in) {
                           return Tensors{ops::conv2d(in[0], in[1], std::nullopt,
                                                      {.mean = in[5],
                                                       .variance = in[6],
                                                       .gain = in[3],
                                                       .offset = in[4],
                                                       .residual = in[2],
                                                       .residual_last = residual_last,
                                                       .activation = ops::ImageActivation::silu})};
                       },
                       {image(6, 8), torch::randn({5, 6, 1, 1}).to(dtype), image(5, 8), row(5),
                        row(5), row(5), row(5)},
                       5});
    }
    all.push_back({"max_pool2d",
                   [](const Tensors& in) {
                       return Tensors{ops::max_pool2d(
                           in[0], {3, 3}, {.stride = ops::Size2d{2, 2}, .padding = {1, 1}})};
                   },
                   {image(3, 9)},
                   1});
    all.push_back({"max_pool2d",
                   [](const Tensors& in) { return Tensors{ops::max_pool2d(in[0], {2, 2})}; },
                   {image(3, 8)},
                   1});
    return all;
}

std::vector<Case> attention_cases(at::ScalarType dtype) {
    const auto heads = [&](std::int64_t count, std::int64_t rows) {
        return torch::randn({2, rows, count, 16}).to(dtype).transpose(1, 2);
    };
    const auto call = [](const ops::AttentionOptions& how) {
        return [=](const Tensors& in) { return Tensors{ops::attention(in[0], in[1], in[2], how)}; };
    };
    const at::Tensor mask = torch::randn({1, 1, 18, 20}).to(dtype);
    return {{"attention", call({.causal = true}), {heads(4, 18), heads(4, 18), heads(4, 18)}, 3},
            {"attention",
             call({.mask = mask, .scale = 0.5}),
             {heads(4, 18), heads(2, 20), heads(2, 20)},
             3}};
}

// Their store is where the user's cache is at their first use: not the user's.
void use_own_cache() {
    static const tests::Folder folder;
    static const tests::Variable cache("XDG_CACHE_HOME", folder.path().string());
    ops::selector();
}

// Results, then gradients.
Tensors everything(const Case& one, const char* implementation) {
    ops::selector().set_cfg("twinkle-pack::" + one.operation,
                            std::string(R"({"implementation":")") + implementation + R"("})");
    Tensors inputs;
    for (std::size_t i = 0; i < one.inputs.size(); ++i) {
        inputs.push_back(one.inputs[i].clone().requires_grad_(i < one.differentiable));
    }
    Tensors all;
    {
        const at::NoGradGuard no_gradients;
        all = one.call(inputs);
    }
    const Tensors results = one.call(inputs);
    at::Tensor sum = torch::zeros({});
    for (std::size_t i = 0; i < results.size(); ++i) {
        CHECK(at::equal(results[i], all[i]));
        const at::Tensor factors = at::cos(at::arange(results[i].numel())).view_as(results[i]);
        sum = sum + (results[i].to(at::kFloat) * factors).sum();
    }
    sum.backward();
    for (std::size_t i = 0; i < one.differentiable; ++i) {
        all.push_back(inputs[i].grad());
    }
    ops::selector().set_cfg("twinkle-pack::" + one.operation, std::nullopt);
    return all;
}

// The pack's results and gradients are LibTorch's.
void check_both(const std::vector<Case>& all, at::ScalarType dtype) {
    const double allowed = dtype == at::kBFloat16 ? 6e-2 : dtype == at::kFloat ? 1e-4 : 1e-8;
    for (const Case& one : all) {
        INFO(one.operation << " " << dtype);
        const Tensors pack = everything(one, "twinkle-pack");
        const Tensors plain = everything(one, "libtorch");
        REQUIRE(pack.size() == plain.size());
        for (std::size_t i = 0; i < pack.size(); ++i) {
            REQUIRE(pack[i].defined());
            CHECK(pack[i].dtype() == plain[i].dtype());
            CHECK(pack[i].sizes() == plain[i].sizes());
            const double error = (pack[i] - plain[i]).norm().item<double>() /
                                 (plain[i].norm().item<double>() + 1e-30);
            CHECK(error < allowed);
        }
    }
}

}  // namespace

TEST_CASE("the pack and LibTorch compute the same, with the same gradients") {
    use_own_cache();
    torch::manual_seed(3);
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
        check_both(cases(dtype), dtype);
        check_both(linear_cases(dtype), dtype);
        check_both(image_cases(dtype), dtype);
        check_both(attention_cases(dtype), dtype);
    }
}

TEST_CASE("linear layers and convolutions compute what LibTorch's modules do") {
    use_own_cache();
    const at::Tensor x = torch::randn({4, 24}), weight = torch::randn({20, 24});
    const at::Tensor bias = torch::randn({20}), other = torch::randn({20, 24});
    CHECK(at::allclose(ops::linear(x, weight, bias), at::linear(x, weight, bias), 1e-4, 1e-5));
    CHECK(at::allclose(ops::linear_silu_mul(x, weight, bias, other, std::nullopt),
                       at::silu(at::linear(x, weight, bias)) * at::linear(x, other), 1e-4, 1e-4));
    CHECK(at::allclose(ops::gelu_quick(x), x * at::sigmoid(1.702 * x), 1e-4, 1e-5));
    const at::Tensor image = torch::randn({2, 6, 9, 9}), kernel = torch::randn({12, 3, 3, 3});
    const at::Tensor expected = at::conv2d(image, kernel, {}, {2, 2}, {1, 1}, {1, 1}, 2);
    const ops::Conv2dOptions how{.stride = {2, 2}, .padding = {1, 1}, .groups = 2};
    CHECK(at::allclose(ops::conv2d(image, kernel, std::nullopt, how), expected, 1e-4, 1e-4));
    const auto last = at::MemoryFormat::ChannelsLast;
    const at::Tensor in_last = ops::conv2d(image.contiguous(last), kernel, std::nullopt, how);
    CHECK(at::allclose(in_last, expected, 1e-4, 1e-4));
    CHECK(in_last.is_contiguous(last));
    CHECK(at::equal(ops::max_pool2d(image, {2, 2}, {.ceil_mode = true}),
                    at::max_pool2d(image, {2, 2}, {2, 2}, {0, 0}, {1, 1}, true)));
    CHECK_THROWS(ops::linear(x, torch::randn({20, 23})));
}

TEST_CASE("a configuration has the arguments that the build declares") {
    use_own_cache();
    const at::Tensor x = torch::randn({4, 64}), weight = torch::randn({32, 64});
    const std::string name = "twinkle-pack::linear";
    for (const int way : {0, 1, 2, 3}) {
        ops::selector().set_cfg(name, R"({"grain":16384,"implementation":"twinkle-pack","way":)" +
                                          std::to_string(way) + "}");
        CHECK(at::allclose(ops::linear(x, weight), at::linear(x, weight), 1e-4, 1e-4));
    }
    for (const char* wrong : {R"({"implementation":"twinkle-pack","reading":1})",
                              R"({"implementation":"twinkle-pack","way":"few"})",
                              R"({"implementation":"mine"})", R"({})"}) {
        ops::selector().set_cfg(name, wrong);
        CHECK(code_of([&] { ops::linear(x, weight); }) == ErrorCode::malformed);
    }
    ops::selector().set_cfg(name, std::nullopt);
}

TEST_CASE("what the pack has no code for LibTorch computes") {
    use_own_cache();
    const at::Tensor x = torch::randn({4, 4}).to(at::kComplexFloat);
    CHECK(at::allclose(ops::silu(x), at::silu(x)));
    const at::Tensor whole = torch::randint(-5, 5, {4, 4});
    CHECK(at::equal(ops::relu(whole), at::relu(whole)));
}

TEST_CASE("the typed functions are tuned like any operation") {
    use_own_cache();
    const at::Tensor x = torch::randn({64, 256});
    const at::Tensor weight = torch::randn({256});
    {
        const policy_override scope(TuningPolicy::When::first_use);
        ops::rms_norm(x, weight);
    }
    CHECK(ops::selector().cache().size() >= 1);
    CHECK(at::allclose(ops::rms_norm(x, weight),
                       x * torch::rsqrt(x.square().mean(-1, true) + 1e-6) * weight, 1e-4, 1e-5));
}

TEST_CASE("calls of the typed functions are recorded and tuned, with the sizes that they had") {
    use_own_cache();
    clear_invocations();
    const at::Tensor x = torch::randn({3, 24}), weight = torch::randn({20, 24});
    const Maybe bias = torch::randn({20});
    const at::Tensor image = torch::randn({2, 6, 9, 9});
    {
        const recording scope;
        ops::linear(x, weight, bias);
        ops::linear_silu_mul(x, weight, bias, weight, bias);
        ops::linear2(x, weight, bias, torch::randn({7, 24}), std::nullopt);
        ops::linear3(x, weight, bias, weight, bias, weight, bias);
        ops::conv2d(image, torch::randn({10, 3, 3, 3}), torch::randn({10}),
                    {.padding = {1, 1},
                     .groups = 2,
                     .mean = torch::randn({10}),
                     .variance = torch::rand({10}),
                     .residual = torch::randn({2, 10, 9, 9})});
        ops::conv2d(image.contiguous(at::MemoryFormat::ChannelsLast), torch::randn({10, 6, 3, 3}));
        ops::max_pool2d(image, {3, 3});
        ops::gelu_new(x);
        const at::Tensor heads = torch::randn({1, 4, 18, 16});
        ops::attention(heads, heads, heads, {.mask = torch::randn({18, 18})});
    }
    const auto calls = get_invocations();
    REQUIRE(calls.size() == 9);
    for (const Invocation& call : calls) {
        INFO(call.key());
        const Measurement measured = ops::tune_recorded(call, {.num_iters = 2});
        CHECK(measured.candidates.size() >= 2);
        for (const MeasuredCfg& candidate : measured.candidates) {
            CHECK(candidate.problem == "");
        }
        CHECK(ops::selector().cache().contains(call.key()));
    }
    Invocation changed = calls.at(4);
    changed.inputs.back().value = "6,9,10,90";
    CHECK(code_of([&] { ops::tune_recorded(changed); }) == ErrorCode::malformed);
    changed.inputs.back().value = "6,9,10";
    CHECK(code_of([&] { ops::tune_recorded(changed); }) == ErrorCode::malformed);
    changed.inputs.back().value = "6,9,10,-3";
    CHECK(code_of([&] { ops::tune_recorded(changed); }) == ErrorCode::malformed);
    // A result larger than any argument may be.
    changed = calls.at(4);
    REQUIRE(changed.inputs.at(10).dtype == "ints");
    changed.inputs[10].value = "1,1,1000000,1000000,1,1,2,0";
    CHECK(code_of([&] { ops::tune_recorded(changed); }) == ErrorCode::malformed);
    changed = calls.at(0);
    changed.inputs.at(0).sizes = {1 << 20, 24};
    changed.inputs.at(1).sizes = {1 << 20, 24};
    changed.inputs.back().value = std::to_string(1 << 20);
    CHECK(code_of([&] { ops::tune_recorded(changed); }) == ErrorCode::malformed);
    clear_invocations();
}
