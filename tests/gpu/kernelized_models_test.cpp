// Kernelized models on all GPUs of a host at once, in one process (script/test-gpu runs this on the
// output of tests/gpu/make_kernelized.py; with one GPU, twice on that).

#include "twinkle/graphed_model.h"
#include "twinkle/load.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/cuda.h>

#include <cstdlib>
#include <mutex>
#include <thread>

// After LibTorch.
#include "catch.h"

using namespace twinkle;

namespace {

constexpr int rounds = 12;

std::filesystem::path made(const char* name) {
    const char* folder = std::getenv("TWINKLE_KERNELIZED");
    REQUIRE(folder != nullptr);
    return std::filesystem::path(folder) / name;
}

LoadOptions on(at::Device device) {
    return {.kernel_dirs = {made("kernels")}, .device = device};
}

double difference(const at::Tensor& have, const at::Tensor& want) {
    return ((have.to(at::kDouble) - want.to(at::kDouble)).norm() / want.to(at::kDouble).norm())
        .item<double>();
}

// One model, as a server would hold it: plain, through graphs, and marked to be replayed.
struct Served {
    explicit Served(at::Device on_device)
        : device(on_device),
          original(load(made("original.pt"), on(device))),
          plain(load(made("kernelized.pt"), on(device))),
          marked(load(made("marked.pt"), on(device))),
          graphed(load(made("kernelized.pt"), on(device))) {}

    void compare(const std::string& how, const c10::IValue& result, const at::Tensor& want) {
        const at::Tensor have = result.toTensor();
        if (have.device() != device) {
            problems.push_back(how + ", on " + have.device().str());
        } else if (const double off = difference(have, want); !(off < 0.03)) {
            problems.push_back(how + ", off by " + std::to_string(off));
        }
    }

    at::Device device;
    torch::jit::Module original, plain, marked;
    GraphedModel graphed;
    std::vector<std::string> problems{};
};

// Tokens that are ready late: a reader that does not wait for the stream sees zeros.
at::Tensor late_tokens(const at::Tensor& tokens) {
    at::Tensor late = at::zeros_like(tokens);
    at::Tensor slow = at::eye(4096, tokens.options().dtype(at::kBFloat16));
    const at::Tensor one = slow.clone();
    for (int i = 0; i < 10; ++i) {
        slow = at::matmul(slow, one);
    }
    late.copy_(tokens * slow.index({0, 0}).to(at::kLong));
    return late;
}

void serve(Served& served) {
    const torch::NoGradGuard no_grad;
    // A stream of this device, while the current device stays the first one.
    const c10::impl::VirtualGuardImpl cuda(at::kCUDA);
    const c10::Stream stream = cuda.getStreamFromGlobalPool(served.device, false);
    const c10::Stream before = cuda.exchangeStream(stream);
    for (int round = 0; round < rounds; ++round) {
        const std::int64_t count = round % 3 == 0 ? 7 : 16;
        const at::Tensor tokens = (at::arange(count, at::kLong) * 31 + round)
                                      .remainder(89)
                                      .add(1)
                                      .unsqueeze(0)
                                      .to(served.device);
        const at::Tensor want = served.original.forward({tokens}).toTensor();
        served.compare("plain", served.plain.forward({late_tokens(tokens)}), want);
        served.compare("graphed", served.graphed.forward({late_tokens(tokens)}), want);
        served.compare("marked", served.marked.forward({late_tokens(tokens)}), want);
    }
    stream.synchronize();
    cuda.exchangeStream(before);
    if (cuda.getDevice().index() != 0) {
        served.problems.push_back("the current device is another one");
    }
}

}  // namespace

TEST_CASE("kernelized models run on every GPU at once, on streams of their own") {
    const int gpus = static_cast<int>(torch::cuda::device_count());
    REQUIRE(gpus > 0);
    std::vector<std::unique_ptr<Served>> served;
    for (int i = 0; i < std::max(2, gpus); ++i) {
        served.push_back(std::make_unique<Served>(
            at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(i % gpus))));
    }
    std::vector<std::thread> threads;
    for (auto& one : served) {
        threads.emplace_back([&one] {
            try {
                serve(*one);
            } catch (const std::exception& error) {
                one->problems.push_back(error.what());
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (const auto& one : served) {
        INFO(one->device.str());
        CHECK(one->problems == std::vector<std::string>{});
        CHECK(one->graphed.statistics().replays > 0);
    }
}

TEST_CASE("a kernelized model moves from one GPU to another") {
    const torch::NoGradGuard no_grad;
    const int gpus = static_cast<int>(torch::cuda::device_count());
    auto model = load(made("kernelized.pt"), on(at::kCPU));
    auto original = load(made("original.pt"), on(at::Device(at::kCUDA, 0)));
    const at::Tensor tokens = at::arange(1, 12, at::kLong).unsqueeze(0);
    const at::Tensor want =
        original.forward({tokens.to(at::Device(at::kCUDA, 0))}).toTensor().cpu();
    for (int i = gpus - 1; i >= 0; --i) {
        const at::Device device(at::kCUDA, static_cast<c10::DeviceIndex>(i));
        model.to(device);
        const at::Tensor have = model.forward({tokens.to(device)}).toTensor();
        CHECK(have.device() == device);
        CHECK(difference(have.cpu(), want) < 0.03);
    }
}

TEST_CASE("a marked model follows what its program does to it") {
    const torch::NoGradGuard no_grad;
    const at::Device device(at::kCUDA, 0);
    auto plain = load(made("kernelized.pt"), on(device));
    auto marked = load(made("marked.pt"), on(device));
    const auto check = [&](const std::string& what) {
        INFO(what);
        for (std::int64_t call = 0; call < 4; ++call) {
            const at::Tensor tokens =
                (at::arange(16, at::kLong) * 7 + call).remainder(89).add(1).unsqueeze(0).to(device);
            CHECK(difference(marked.forward({tokens}).toTensor(),
                             plain.forward({tokens}).toTensor()) < 1e-3);
        }
    };
    check("as loaded");
    for (auto* model : {&plain, &marked}) {
        (*model->parameters().begin()).mul_(0.5);
    }
    check("a weight written into");
    plain.train();
    marked.train();
    check("in training");
    plain.eval();
    marked.eval();
    check("in evaluation again");
    {
        const c10::InferenceMode inference;
        check("in inference mode");
    }
    for (auto* model : {&plain, &marked}) {
        model->to(at::kCPU);
        model->to(device);
    }
    check("moved away and back");
}
