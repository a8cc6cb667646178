// Graphed models on a GPU (script/test-gpu runs this): correct, replayed, bounded, and healthy
// after every failure.

#include "twinkle/graphed_model.h"
#include "torchscript.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/cuda.h>

#include <atomic>
#include <thread>

// After LibTorch.
#include "catch.h"

using namespace twinkle;

namespace {

constexpr std::int64_t width = 512;

// Two layers with a product, a norm and an activation: some twenty launches.
const char* layers = R"(
def layer(self, x):
    wide = x.float()
    normal = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * self.norm
    return x + torch.matmul(torch.silu(torch.matmul(normal, self.up)), self.down)

def forward(self, x):
    return self.layer(self.layer(x))
)";

torch::jit::Module model_of(const std::string& methods, at::Device device = at::kCUDA,
                            at::ScalarType dtype = at::kBFloat16) {
    auto unit = std::make_shared<torch::jit::CompilationUnit>();
    torch::jit::Module model(c10::QualifiedName("__torch__.tests.OnGpu"), unit, true);
    model.register_attribute("training", c10::BoolType::get(), false);
    torch::manual_seed(0);
    const auto weight = [&](const char* name, at::IntArrayRef shape, double scale) {
        model.register_parameter(name, (torch::randn(shape) * scale).to(device, dtype), false);
    };
    weight("norm", {width}, 1);
    weight("up", {width, 2 * width}, 0.05);
    weight("down", {2 * width, width}, 0.05);
    model.register_buffer("seen", torch::zeros({width}, device));
    model.define(methods);
    return model;
}

at::Tensor input(std::int64_t rows, double shift = 0, at::Device device = at::kCUDA) {
    torch::manual_seed(rows);
    return (torch::randn({rows, width}) + shift).to(device, at::kBFloat16);
}

// Compares as a whole: LibTorch's fuser rounds less often than single operators do, and after
// cancellation values differ by more than their own size.
bool near(const at::Tensor& have, const at::Tensor& want) {
    if (have.sizes() != want.sizes() || have.scalar_type() != want.scalar_type() ||
        have.device() != want.device()) {
        return false;
    }
    const at::Tensor exact = want.to(at::kDouble);
    return (have.to(at::kDouble) - exact).norm().item<double>() <
           0.01 * exact.norm().item<double>() + 1e-12;
}

std::string reason_of(GraphedModel& model) {
    for (const auto& [reason, count] : model.statistics().reasons) {
        if (reason != "the shape is new") {
            return reason;
        }
    }
    return "";
}

c10::Stream new_stream(at::Device device) {
    return c10::impl::VirtualGuardImpl(at::kCUDA).getStreamFromGlobalPool(device, false);
}

// Checks what a failed capture may break: the allocator, the generator, the stream.
void check_health() {
    const at::Tensor random = torch::rand({1000}, at::kCUDA);
    CHECK(random.mean().item<float>() > 0);
    CHECK(torch::matmul(input(8), input(8).t()).isfinite().all().item<bool>());
    torch::cuda::synchronize();
}

}  // namespace

TEST_CASE("replays give what runs give, at every shape") {
    const torch::NoGradGuard no_grad;
    for (const bool freeze : {true, false}) {
        for (const bool fuse : {false, true}) {
            auto plain = model_of(layers);
            GraphedModel graphed(model_of(layers), {.freeze = freeze, .fuse = fuse});
            for (int i = 0; i < 6; ++i) {
                for (const std::int64_t rows : {1, 17, 256}) {
                    const at::Tensor x = input(rows, 0.1 * i);
                    CHECK(near(graphed.forward({x}).toTensor(), plain.forward({x}).toTensor()));
                }
            }
            const GraphStatistics said = graphed.statistics();
            INFO(reason_of(graphed));
            CHECK(said.captures == 3);
            CHECK(said.replays == 15);
            CHECK(said.plain_runs == 3);
            CHECK(said.bytes > 0);
            CHECK(said.not_frozen.empty());
            graphed.clear();
            CHECK(graphed.statistics().bytes == 0);
        }
    }
    check_health();
}

TEST_CASE("layers of one input are one in a graph, whose weights live as long as it does") {
    const torch::NoGradGuard no_grad;
    const char* three = R"(
def forward(self, x):
    q, k, v = torch.linear(x, self.q), torch.linear(x, self.k), torch.linear(x, self.v)
    return torch.silu(q.view(-1, 8, 64)).flatten(1) * k[:, :512] + v
)";
    torch::jit::Module plain = model_of("def unused(self, x):\n    return x\n");
    for (const auto& [name, outputs] : {std::pair{"q", 512}, {"k", 1024}, {"v", 512}}) {
        plain.register_parameter(
            name, (torch::randn({outputs, width}) * 0.05).to(at::kCUDA, at::kBFloat16), false);
    }
    plain.define(three);
    GraphedModel joined(plain.clone()), apart(plain.clone(), {.join = false});
    for (int i = 0; i < 4; ++i) {
        for (const std::int64_t rows : {1, 17, 256}) {
            const at::Tensor x = input(rows, 0.1 * i);
            const at::Tensor want = plain.forward({x}).toTensor();
            CHECK(near(joined.forward({x}).toTensor(), want));
            CHECK(near(apart.forward({x}).toTensor(), want));
            // What others get of freed memory must not be weights.
            CHECK(torch::full({512, width}, 1e30, at::kCUDA).isfinite().all().item<bool>());
        }
    }
    CHECK(joined.statistics().joined_layers == 2);
    CHECK(joined.statistics().joined_bytes == 2048 * width * 2);
    CHECK(apart.statistics().joined_layers == 0);
    CHECK(joined.statistics().replays == 9);
    joined.clear();
    CHECK(joined.statistics().joined_bytes == 0);
    check_health();
}

TEST_CASE("prepared shapes are replayed from the first call on") {
    const torch::NoGradGuard no_grad;
    auto plain = model_of(layers);
    GraphedModel graphed(model_of(layers));
    CHECK(graphed.prepare({input(1)}) == std::nullopt);
    CHECK(near(graphed.forward({input(1, 1)}).toTensor(), plain.forward({input(1, 1)}).toTensor()));
    CHECK(graphed.statistics().replays == 1);
}

TEST_CASE("results are the caller's own, or the graph's") {
    const torch::NoGradGuard no_grad;
    GraphedModel own(model_of(layers));
    GraphedModel shared(model_of(layers), {.clone_outputs = false});
    own.prepare({input(4)});
    shared.prepare({input(4)});
    const at::Tensor first = own.forward({input(4, 1)}).toTensor();
    const at::Tensor copy = first.clone();
    own.forward({input(4, 2)});
    CHECK(at::equal(first, copy));
    const at::Tensor result = shared.forward({input(4, 1)}).toTensor();
    CHECK(shared.forward({input(4, 2)}).toTensor().data_ptr() == result.data_ptr());
}

TEST_CASE("graphs give way to others when there are too many") {
    const torch::NoGradGuard no_grad;
    auto plain = model_of(layers);
    GraphedModel graphed(model_of(layers), {.max_graphs = 2});
    for (int i = 0; i < 6; ++i) {
        for (std::int64_t rows = 1; rows <= 5; ++rows) {
            for (std::int64_t times = 0; times < rows * rows * rows; ++times) {
                const at::Tensor x = input(rows, 0.01 * times);
                if (times % 20 == 0) {
                    CHECK(near(graphed.forward({x}).toTensor(), plain.forward({x}).toTensor()));
                } else {
                    graphed.forward({x});
                }
            }
        }
    }
    const GraphStatistics said = graphed.statistics();
    CHECK(said.graphs == 2);
    CHECK(said.evictions == 2);
    CHECK(said.captures == 4);
    check_health();
}

TEST_CASE("a model that waits for the device runs plainly") {
    const torch::NoGradGuard no_grad;
    GraphedModel graphed(
        model_of("def forward(self, x):\n    n = x.abs().sum().item()\n"
                 "    if n > 0:\n        return x * 2\n    return x - 1\n"));
    for (int i = 0; i < 4; ++i) {
        CHECK(at::equal(graphed.forward({input(3, i)}).toTensor(), input(3, i) * 2));
        CHECK(at::equal(graphed.forward({input(5) * 0}).toTensor(), input(5) * 0 - 1));
    }
    CHECK(graphed.statistics().graphs == 0);
    CHECK(graphed.statistics().bytes == 0);
    CHECK(reason_of(graphed).find("it cannot be captured: ") == 0);
    CHECK(graphed.statistics().plain_runs == 8);
    check_health();
    // Another model can still be captured.
    GraphedModel other(model_of(layers));
    CHECK(other.prepare({input(3)}) == std::nullopt);
}

TEST_CASE("a model that copies from or to the host runs plainly") {
    const torch::NoGradGuard no_grad;
    GraphedModel graphed(
        model_of("def forward(self, x):\n    return x + torch.tensor(x.size(0) + 1.0).to(x)\n"
                 ""),
        {.freeze = false});
    for (int i = 0; i < 4; ++i) {
        CHECK(at::equal(graphed.forward({input(3, i)}).toTensor(), input(3, i) + 4));
    }
    GraphedModel to_host(model_of("def forward(self, x):\n    return x.cpu() * 2\n"));
    for (int i = 0; i < 4; ++i) {
        CHECK(at::equal(to_host.forward({input(3, i)}).toTensor(), input(3, i).cpu() * 2));
    }
    CHECK(to_host.statistics().graphs == 0);
    check_health();
}

TEST_CASE("writes into inputs, random numbers and state are not captured") {
    const torch::NoGradGuard no_grad;
    GraphedModel writes(model_of("def forward(self, x):\n    x.mul_(2)\n    return x + 1\n"));
    for (int i = 0; i < 4; ++i) {
        const at::Tensor x = input(3, i);
        const at::Tensor before = x.clone();
        CHECK(at::equal(writes.forward({x}).toTensor(), before * 2 + 1));
        CHECK(at::equal(x, before * 2));
    }
    CHECK(reason_of(writes) == "the model writes into its inputs");
    GraphedModel draws(model_of("def forward(self, x):\n    return x + torch.rand_like(x)\n"));
    const at::Tensor x = input(3);
    for (int i = 0; i < 3; ++i) {
        CHECK_FALSE(at::equal(draws.forward({x}).toTensor(), draws.forward({x}).toTensor()));
    }
    const char* counts = "def forward(self, x):\n    self.seen.add_(1)\n    return self.seen + x\n";
    GraphedModel state(model_of(counts));
    for (int i = 1; i < 5; ++i) {
        const at::Tensor seen = state.forward({torch::zeros({width}, at::kCUDA)}).toTensor();
        CHECK(seen[0].item<float>() == float(i));
    }
    CHECK(state.statistics().replays == 0);
}

TEST_CASE("a cache that the same inputs write alike is captured on request") {
    const torch::NoGradGuard no_grad;
    const char* keeps =
        "def forward(self, x, at):\n    self.seen.index_copy_(0, at, x)\n    return self.seen * "
        "1\n";
    GraphedModel graphed(model_of(keeps), {.may_write_state = true});
    for (std::int64_t i = 0; i < 8; ++i) {
        const at::Tensor x = torch::full({1}, double(i + 1), at::kCUDA);
        const at::Tensor seen =
            graphed.forward({x, torch::full({1}, i, at::kCUDA).to(at::kLong)}).toTensor().cpu();
        CHECK(at::equal(seen.slice(0, 0, i + 1), torch::arange(1, i + 2).to(at::kFloat)));
        CHECK(seen.slice(0, i + 1).eq(0).all().item<bool>());
    }
    CHECK(graphed.statistics().replays == 7);
}

TEST_CASE("out of memory in a capture leaves a process that works") {
    const torch::NoGradGuard no_grad;
    const std::int64_t gib = 1 << 30;
    // The result is 1 GiB: a capture needs it twice.
    GraphedModel graphed(
        model_of("def forward(self, x):\n    return x.expand(1073741824, 1).contiguous()\n"));
    std::vector<at::Tensor> filled;
    const auto fill = [&](std::int64_t bytes) {
        for (bool full = false; !full;) {
            try {
                filled.push_back(torch::empty({bytes}, at::device(at::kCUDA).dtype(at::kByte)));
            } catch (const c10::Error&) {
                full = true;
            }
        }
    };
    const auto x = [](int value) {
        return torch::full({1, 1}, value, at::device(at::kCUDA).dtype(at::kByte));
    };
    fill(gib / 4);
    const std::size_t large = filled.size();
    REQUIRE(large > 10);
    fill(gib / 64);
    filled.erase(filled.begin(), filled.begin() + 10);  // 2.5 GiB
    const at::Tensor first = graphed.forward({x(1)}).toTensor();
    for (int i = 2; i < 5; ++i) {
        const at::Tensor result = graphed.forward({x(i)}).toTensor();
        CHECK(result[gib - 1].item<int>() == i);
    }
    CHECK(first[0].item<int>() == 1);
    CHECK(reason_of(graphed) == "memory is short for its graph");
    CHECK(graphed.statistics().bytes == 0);
    filled.clear();
    check_health();
    graphed.clear();
    for (int i = 5; i < 8; ++i) {
        CHECK(graphed.forward({x(i)}).toTensor()[gib - 1].item<int>() == i);
    }
    CHECK(graphed.statistics().replays == 2);
}

TEST_CASE("replays run on the caller's stream, after what is on it") {
    const torch::NoGradGuard no_grad;
    auto plain = model_of(layers);
    GraphedModel graphed(model_of(layers));
    graphed.prepare({input(64)});
    const at::Tensor slow = torch::randn({6000, 6000}, at::kCUDA) * 0.01;
    for (int i = 1; i < 5; ++i) {
        const at::Tensor want = plain.forward({input(64, i)}).toTensor();
        const at::Tensor source = input(64, i);
        at::Tensor x = torch::zeros_like(source);
        torch::cuda::synchronize();
        at::Tensor have;
        const c10::Stream stream = new_stream(at::Device(at::kCUDA, 0));
        {
            const c10::StreamGuard on_it(stream);
            at::Tensor busy = slow;
            for (int k = 0; k < 5; ++k) {
                busy = torch::matmul(busy, slow);
            }
            x.copy_(source);  // behind all that
            have = graphed.forward({x}).toTensor();
        }
        // And right afterwards on the default stream: the graph is still in use.
        const at::Tensor other = graphed.forward({source}).toTensor();
        stream.synchronize();
        torch::cuda::synchronize();
        CHECK(near(have, want));
        CHECK(near(other, want));
    }
    CHECK(graphed.statistics().replays == 8);
}

TEST_CASE("threads on streams of their own") {
    const torch::NoGradGuard no_grad;
    GraphedModel graphed(model_of(layers));
    auto plain = model_of(layers);
    std::vector<at::Tensor> inputs, want;
    for (std::int64_t rows = 1; rows <= 4; ++rows) {
        inputs.push_back(input(rows));
        want.push_back(plain.forward({inputs.back()}).toTensor());
    }
    torch::cuda::synchronize();
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&] {
            const torch::NoGradGuard no_grad_here;
            const c10::Stream stream = new_stream(at::Device(at::kCUDA, 0));
            const c10::StreamGuard on_it(stream);
            for (int i = 0; i < 200; ++i) {
                const at::Tensor have = graphed.forward({inputs[i % 4]}).toTensor();
                stream.synchronize();
                wrong += !near(have, want[i % 4]);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(wrong == 0);
    CHECK(graphed.statistics().captures == 4);
    CHECK(graphed.statistics().replays > 400);
    check_health();
}

TEST_CASE("two models have graphs at the same time") {
    const torch::NoGradGuard no_grad;
    auto plain = model_of(layers);
    GraphedModel one(model_of(layers)), other(model_of(layers));
    for (int i = 0; i < 5; ++i) {
        const at::Tensor want = plain.forward({input(8, i)}).toTensor();
        CHECK(near(one.forward({input(8, i)}).toTensor(), want));
        CHECK(near(other.forward({input(8, i)}).toTensor(), want));
    }
    CHECK(one.statistics().replays + other.statistics().replays == 8);
}

TEST_CASE("inputs on the CPU, gradients and training run plainly") {
    GraphedModel cpu(model_of(layers, at::kCPU));
    const at::Tensor x = input(3, 0, at::kCPU);
    CHECK(cpu.forward({x}).toTensor().is_cpu());
    CHECK(reason_of(cpu) == "an input is on cpu");
    GraphedModel gradients(model_of(layers));
    at::Tensor leaf = input(3).requires_grad_(true);
    for (int i = 0; i < 3; ++i) {
        gradients.forward({leaf}).toTensor().sum().backward();
    }
    CHECK(leaf.grad().defined());
    CHECK(gradients.statistics().replays == 0);
}

TEST_CASE("every device has its own graphs") {
    const torch::NoGradGuard no_grad;
    for (int index = 0; index < static_cast<int>(torch::cuda::device_count()); ++index) {
        const at::Device device(at::kCUDA, static_cast<c10::DeviceIndex>(index));
        auto plain = model_of(layers, device);
        GraphedModel graphed(model_of(layers, device));
        for (int i = 0; i < 4; ++i) {
            const at::Tensor x = input(8, i, device);
            const at::Tensor have = graphed.forward({x}).toTensor();
            CHECK(near(have, plain.forward({x}).toTensor()));
            CHECK(have.device() == device);
            CHECK(c10::impl::VirtualGuardImpl(at::kCUDA).getDevice().index() == 0);
        }
        CHECK(graphed.statistics().replays == 3);
    }
}
