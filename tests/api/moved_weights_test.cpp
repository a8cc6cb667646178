// Weights that keep their layout, which twinkle::prepack moves into memory of large pages.

#include "torchscript.h"
#include "twinkle/load.h"

#include <fstream>
#include <functional>
#include <sstream>

// After LibTorch.
#include "catch.h"

using namespace twinkle;

namespace {

const std::string with_three_weights =
    "def forward(self, x):\n"
    "    return torch.matmul(x, self.weight) + torch.matmul(x, self.tied) + self.bias\n";

// A weight that is given to two names, a buffer of another dtype, and a small one.
torch::jit::Module model_of(const std::function<void(torch::jit::Module&)>& change = {}) {
    auto unit = std::make_shared<torch::jit::CompilationUnit>();
    torch::jit::Module root(c10::QualifiedName("__torch__.tests.Large"), unit, true);
    root.register_attribute("training", c10::BoolType::get(), false);
    const at::Tensor weight = torch::randn({512, 512}).set_requires_grad(true);
    root.register_parameter("weight", weight, false);
    root.register_parameter("tied", weight, false);
    root.register_buffer("codes", torch::randint(-128, 127, {1024, 512}, at::kChar));
    root.register_parameter("bias", torch::randn({512}), false);
    root.define(with_three_weights);
    if (change) {
        change(root);
    }
    return root;
}

// As a program gets it from a file, with nothing else that holds its tensors.
torch::jit::Module loaded(const torch::jit::Module& model) {
    std::stringstream stream;
    model.save(stream);
    return torch::jit::load(stream);
}

bool has_huge_pages() {
    std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
    std::string line;
    return std::getline(file, line) && line.find("[never]") == std::string::npos;
}

const void* place_of(const torch::jit::Module& model, const std::string& name) {
    return model.attr(name).toTensor().const_data_ptr();
}

at::Tensor result_of(torch::jit::Module model, const at::Tensor& x) {
    const torch::NoGradGuard no_grad;
    return model.forward({x}).toTensor();
}

}  // namespace

TEST_CASE("large weights are moved, and nothing else of them changes") {
    at::manual_seed(72);
    const torch::jit::Module model = loaded(model_of());
    const at::Tensor x = torch::randn({3, 512}), wanted = result_of(model, x);
    const at::Tensor codes = model.attr("codes").toTensor().clone();
    const void* const weight = place_of(model, "weight");
    const void* const buffer = place_of(model, "codes");
    const void* const bias = place_of(model, "bias");
    CHECK(twinkle::prepack(model) == 0);  // none is laid out in another way
    CHECK((place_of(model, "weight") != weight) == has_huge_pages());
    CHECK((place_of(model, "codes") != buffer) == has_huge_pages());
    CHECK(place_of(model, "bias") == bias);
    CHECK(model.attr("tied").toTensor().is_same(model.attr("weight").toTensor()));
    CHECK(model.attr("weight").toTensor().requires_grad());
    CHECK(!model.attr("codes").toTensor().requires_grad());
    CHECK(model.attr("codes").toTensor().equal(codes));
    CHECK(result_of(model, x).equal(wanted));
    const void* const moved = place_of(model, "weight");
    CHECK(twinkle::prepack(model) == 0);
    CHECK(place_of(model, "weight") == moved);  // once
    CHECK(result_of(loaded(model), x).equal(wanted));
    CHECK(result_of(model.deepcopy(), x).equal(wanted));
}

TEST_CASE("a model that names no kernel is loaded as it is") {
    const tests::Folder folder;
    model_of().save((folder.path() / "plain.pt").string());
    const torch::jit::Module model = load(folder.path() / "plain.pt");
    const void* const weight = place_of(model, "weight");
    twinkle::prepack(model);
    CHECK((place_of(model, "weight") != weight) == has_huge_pages());  // which load has not done
}

TEST_CASE("a buffer that was moved can become larger") {
    const torch::jit::Module model = loaded(model_of([](torch::jit::Module& root) {
        root.register_buffer("cache", torch::zeros({256, 512}));
        root.define(
            "def grow(self, x):\n"
            "    return torch.mul(x, 2., out=self.cache.resize_(0))\n");
    }));
    const void* const before = place_of(model, "cache");
    twinkle::prepack(model);
    CHECK((place_of(model, "cache") != before) == has_huge_pages());
    for (const std::int64_t rows : {256, 900, 3}) {
        const at::Tensor x = torch::randn({rows, 512});
        CHECK(model.get_method("grow")({x}).toTensor().equal(x * 2));
    }
}

TEST_CASE("what autograd knows of a weight stays") {
    const auto gradient = [](torch::jit::Module model) {
        const at::Tensor x = torch::ones({1, 512}).set_requires_grad(true);
        model.forward({x}).toTensor().sum().backward();
        return x.grad();
    };
    torch::jit::Module model = loaded(model_of());
    const at::Tensor wanted = gradient(loaded(model));
    {
        const c10::InferenceMode inference;
        twinkle::prepack(model);
    }
    CHECK(!model.attr("weight").toTensor().is_inference());
    CHECK(gradient(model).equal(wanted));
    // No leaf, and a leaf with a hook.
    torch::jit::Module hooked = loaded(model_of());
    int calls = 0;
    hooked.attr("weight").toTensor().register_hook([&calls](at::Tensor) { ++calls; });
    twinkle::prepack(hooked);
    gradient(hooked);
    CHECK(calls == 1);
    torch::jit::Module scaled = loaded(model_of());
    const at::Tensor leaf = torch::ones({512, 512}).set_requires_grad(true);
    scaled.setattr("weight", leaf * 2);
    twinkle::prepack(scaled);
    gradient(scaled);
    CHECK(leaf.grad().defined());
}

TEST_CASE("weights stay where they are while something else holds them") {
    const auto stays = [](const torch::jit::Module& model) {
        const void* const before = place_of(model, "weight");
        CHECK(twinkle::prepack(model) == 0);
        return place_of(model, "weight") == before;
    };
    const torch::jit::Module held = loaded(model_of());
    {
        const at::Tensor weight = held.attr("weight").toTensor();
        CHECK(stays(held));
    }
    {
        const at::Tensor part = held.attr("weight").toTensor().narrow(0, 3, 5);
        CHECK(stays(held));
    }
    CHECK(stays(held) != has_huge_pages());  // now it is alone

    torch::jit::Module training = loaded(model_of());
    training.train();
    CHECK(stays(training));
    const torch::jit::Module strided = loaded(model_of([](torch::jit::Module& root) {
        const at::Tensor weight = torch::randn({512, 512}).t();
        root.setattr("weight", weight);
        root.setattr("tied", weight);
    }));
    CHECK(stays(strided));
    // A program's own memory, as that of a mapped file.
    torch::jit::Module own = loaded(model_of());
    std::vector<float> memory(512 * 512);
    const at::Tensor there = at::from_blob(memory.data(), {512, 512});
    own.setattr("weight", there.alias());
    own.setattr("tied", there.alias());
    CHECK(stays(own));
    torch::jit::Module with_gradient = loaded(model_of());
    with_gradient.forward({torch::ones({1, 512})}).toTensor().sum().backward();
    CHECK(stays(with_gradient));
    CHECK(with_gradient.attr("weight").toTensor().grad().defined());
}
