// Weights that twinkle::load lays out for this machine: which, and that nothing else changes.

#include "api/saved_model.h"

#include <functional>
#include <sstream>

// After LibTorch.
#include "catch.h"

using namespace twinkle;

namespace {

at::Tensor parameter(at::IntArrayRef sizes) {
    return torch::randn(sizes).div_(16).set_requires_grad(true);
}

// A convolution with an activation behind it.
torch::jit::Module layer(const std::shared_ptr<torch::jit::CompilationUnit>& unit,
                         const std::string& forward) {
    torch::jit::Module module(c10::QualifiedName("__torch__.tests.Layer"), unit, true);
    module.register_parameter("weight", parameter({32, 32, 3, 3}), false);
    module.register_parameter("bias", parameter({32}), false);
    module.define(forward);
    return module;
}

const std::string convolution =
    "def forward(self, x):\n"
    "    return torch.relu(torch.conv2d(x, self.weight, self.bias, [1, 1], [1, 1], [1, 1], 1))\n";

const std::string all_three =
    "def forward(self, x):\n"
    "    return self.c.forward(self.b.forward(self.a.forward(x))).flatten(1)\n";

torch::jit::Module three_layers(const std::string& second, const std::string& root_forward,
                                const std::function<void(torch::jit::Module&)>& change) {
    auto unit = std::make_shared<torch::jit::CompilationUnit>();
    torch::jit::Module root(c10::QualifiedName("__torch__.tests.Root"), unit, true);
    root.register_attribute("training", c10::BoolType::get(), true);
    root.register_module("a", layer(unit, convolution));
    root.register_module("b", layer(unit, second));
    root.register_module("c", layer(unit, convolution));
    root.define(root_forward);
    root.eval();
    if (change) {
        change(root);
    }
    return root;
}

// Three of them. The last one has a result in the plain layout, and its weight stays as it is.
class Saved : public tests::SavedModel {
public:
    explicit Saved(const std::string& second = convolution,
                   const std::string& root_forward = all_three,
                   const std::function<void(torch::jit::Module&)>& change = {})
        : SavedModel(three_layers(second, root_forward, change), "convolutions") {}

    // How many weights have another shape than in the file.
    std::size_t prepacked() const { return changed(load(true)); }
    std::size_t changed(const torch::jit::Module& model) const {
        std::size_t count = 0;
        for (const auto& one : model.named_parameters()) {
            count += one.value.dim() > 4 ? 1 : 0;
        }
        return count;
    }
};

at::Tensor run(torch::jit::Module model, const at::Tensor& x) {
    const torch::NoGradGuard no_grad;
    return model.forward({x}).toTensor();
}

at::Tensor image(std::int64_t side = 24) {
    return torch::randn({2, 32, side, side});
}

// Whether the pack prepacks on this machine at all (TWINKLE_PACK_ISA).
bool prepacks() {
    static const bool does = [] {
        const Saved saved;
        const std::string space = required_kernels(saved.file()).at(0).op_namespace;
        load_required_kernels(saved.file());
        torch::jit::Stack stack{torch::randn({32, 32, 3, 3}), 1, true};
        c10::Dispatcher::singleton()
            .findSchemaOrThrow((space + "::conv2d_prepack").c_str(), "")
            .callBoxed(stack);
        return stack.at(0).isTensor();
    }();
    return does;
}

}  // namespace

TEST_CASE("weights of convolutions are prepacked when a model is loaded") {
    const Saved saved;
    REQUIRE(saved.report.count(SiteStatus::replaced) == 3);
    if (!prepacks()) return;
    CHECK(saved.changed(saved.load(false)) == 0);
    torch::jit::Module model = saved.load(true);
    CHECK(saved.changed(model) == 2);
    for (const std::int64_t side : {1, 5, 24, 60}) {
        const at::Tensor x = image(side);
        CHECK(at::equal(run(model, x), run(saved.load(false), x)));
        const at::Tensor last = x.contiguous(at::MemoryFormat::ChannelsLast);
        CHECK(at::equal(run(model, last), run(saved.load(false), last)));
    }
}

TEST_CASE("LibTorch gets the plain weight of a dtype that the operator leaves to it") {
    if (!prepacks()) return;
    const Saved saved;
    torch::jit::Module model = saved.load(true), plain = saved.load(false);
    const at::Tensor x = image();
    model.to(at::kDouble);
    plain.to(at::kDouble);
    CHECK(at::allclose(run(model, x.to(at::kDouble)), run(plain, x.to(at::kDouble))));
}

TEST_CASE("a model with prepacked weights can be saved, frozen and copied") {
    if (!prepacks()) return;
    const Saved saved;
    const at::Tensor x = image(), wanted = run(saved.load(false), x);
    torch::jit::Module model = saved.load(true);
    std::stringstream bytes;
    model.save(bytes);
    CHECK(bytes.str().size() < std::filesystem::file_size(saved.file()) + 65536);
    CHECK(at::equal(run(torch::jit::load(bytes), x), wanted));
    CHECK(at::equal(run(torch::jit::freeze(model), x), wanted));
    CHECK(at::equal(run(model.deepcopy(), x), wanted));
    CHECK(at::equal(run(model, x), wanted));
}

TEST_CASE("weights that something else reads, or may read, stay as they are") {
    if (!prepacks()) return;
    const std::string read =
        "def forward(self, x):\n"
        "    y = torch.conv2d(x, self.weight, self.bias, [1, 1], [1, 1], [1, 1], 1)\n"
        "    return torch.relu(y) * self.weight.sum()\n";
    CHECK(Saved(read).prepacked() == 1);
    const std::string returned =
        "def forward(self, x):\n"
        "    return torch.relu(torch.conv2d(x, self.weight, self.bias, [1, 1], [1, 1], [1, 1], "
        "1))\n"
        "def weight_of(self):\n"
        "    return self.weight\n";
    CHECK(Saved(returned).prepacked() == 2);  // nothing calls it
    const std::string asks =
        "def forward(self, x):\n"
        "    y = self.c.forward(self.b.forward(self.a.forward(x)))\n"
        "    return y.flatten(1) + self.b.weight_of().mean()\n";
    CHECK(Saved(returned, asks).prepacked() == 1);
    const std::string other_method = "def norm(self):\n    return self.a.weight.norm()\n";
    CHECK(Saved(convolution, all_three, [&](torch::jit::Module& root) {
              root.define(other_method);
          }).prepacked() == 1);
    const std::string writes =
        "def forward(self, x):\n"
        "    y = torch.relu(torch.conv2d(x, self.weight, self.bias, [1, 1], [1, 1], [1, 1], 1))\n"
        "    self.weight = torch.zeros([32, 32, 3, 3])\n"
        "    return y\n";
    CHECK(Saved(writes).prepacked() == 1);
}

// Each function calls the one before twice.
TEST_CASE("code that no memory holds inlined is left alone") {
    if (!prepacks()) return;
    const Saved saved;
    torch::jit::Module model = saved.load(false);
    model.define("def f0(self, x):\n    return self.forward(x) + 1\n");
    for (int i = 1; i < 40; ++i) {
        const std::string before = "self.f" + std::to_string(i - 1);
        model.define("def f" + std::to_string(i) + "(self, x):\n    return " + before + "(x) + " +
                     before + "(x)\n");
    }
    const tests::Folder folder;
    model.save((folder.path() / "large.pt").string());
    CHECK(saved.changed(twinkle::load(folder.path() / "large.pt")) == 0);
}

TEST_CASE("tied weights stay as they are") {
    if (!prepacks()) return;
    const Saved saved(convolution, all_three, [](torch::jit::Module& root) {
        root.attr("b").toModule().setattr("weight", root.attr("a").toModule().attr("weight"));
    });
    CHECK(saved.prepacked() == 0);
}

TEST_CASE("a model in training is not prepacked") {
    if (!prepacks()) return;
    const Saved saved;
    torch::jit::Module model = saved.load(false);
    model.train();
    tests::Folder folder;
    model.save((folder.path() / "training.pt").string());
    CHECK(saved.changed(twinkle::load(folder.path() / "training.pt")) == 0);
}

TEST_CASE("weights that several methods use") {
    if (!prepacks()) return;
    const auto changed_with = [](const std::string& method) {
        const Saved saved;
        torch::jit::Module model = saved.load(false);
        model.define(method);
        const tests::Folder folder;
        model.save((folder.path() / "more.pt").string());
        return saved.changed(twinkle::load(folder.path() / "more.pt"));
    };
    CHECK(changed_with("def twice(self, x):\n"
                       "    return self.a.forward(x) + self.a.forward(x)\n") == 2);
    CHECK(changed_with("def either(self, x, first: bool):\n"
                       "    if first:\n"
                       "        y = self.a.forward(x)\n"
                       "    else:\n"
                       "        y = self.b.forward(x)\n"
                       "    return y\n") == 2);
}

TEST_CASE("a layer under two names computes as before") {
    if (!prepacks()) return;
    const Saved saved(convolution, all_three, [](torch::jit::Module& root) {
        root.register_module("again", root.attr("a").toModule());
    });
    const at::Tensor x = image();
    CHECK(at::equal(run(saved.load(true), x), run(saved.load(false), x)));
}

TEST_CASE("an x with the wrong number of channels is refused as before") {
    if (!prepacks()) return;
    const Saved saved;
    for (const std::int64_t channels : {1, 16, 24, 31, 33, 64}) {
        CHECK_THROWS(run(saved.load(false), torch::randn({1, channels, 8, 8})));
        CHECK_THROWS(run(saved.load(true), torch::randn({1, channels, 8, 8})));
    }
}

TEST_CASE("gradients are asked for as before") {
    if (!prepacks()) return;
    const torch::jit::Module model = Saved().load(true);
    for (const auto& one : model.named_parameters()) {
        CHECK(one.value.requires_grad());
    }
}
