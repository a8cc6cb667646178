// The bundled kernels as functions: both implementations compute the same, forward and backward.

#include "twinkle/tuning.h"

#include "api/package.h"

#include <functional>

// After LibTorch.
#include "catch.h"

using namespace twinkle;

namespace {

using Tensors = std::vector<at::Tensor>;

struct Case {
    std::string operation;
    std::function<Tensors(const Tensors&)> call;
    Tensors inputs;
    std::size_t differentiable;  // so many of the first inputs have gradients
};

Tensors list(const std::tuple<at::Tensor, at::Tensor>& pair) {
    return {std::get<0>(pair), std::get<1>(pair)};
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

// Their store is where the user's cache is at their first use: not the user's.
void use_own_cache() {
    static const tests::Folder folder;
    static const tests::Variable cache("XDG_CACHE_HOME", folder.path().string());
    ops::selector();
}

// Results, then gradients.
Tensors everything(const Case& one, const char* implementation) {
    ops::selector().set_cfg(
        "twinkle-pack::" + one.operation,
        std::string(R"({"implementation":")") + implementation + R"(","grain":0,"reading":0})");
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

}  // namespace

TEST_CASE("the pack and LibTorch compute the same, with the same gradients") {
    use_own_cache();
    torch::manual_seed(3);
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
        const double allowed = dtype == at::kBFloat16 ? 6e-2 : dtype == at::kFloat ? 1e-4 : 1e-8;
        for (const Case& one : cases(dtype)) {
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
