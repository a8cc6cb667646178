#pragma once
// Captured runs on the CPU: a replay runs the model again and writes its results into the same
// outputs. Failures of a GPU happen on request.

#include "runtime/replay/model_graphs.h"
#include "torchscript.h"

#include <atomic>

namespace twinkle::tests {

struct FakeDevice {
    int captures = 0;
    int released = 0;
    std::atomic<int> inside{0};  // uses of captured runs at the same time
    std::atomic<int> most_inside{0};
    std::function<void(int capture)> fails;  // throws what a device would; asked after the warm-up
    bool leaves_kernels_out = false;
    bool release_fails = false;
    bool has_failed = false;  // nothing can be made on it
    bool stream_is_capturing = false;
    std::size_t bytes = 1000;  // of every capture
    std::size_t free_memory = 1'000'000;
    // Goes on by a second with every look; a replay takes replay_seconds of it.
    std::atomic<double>* clock = nullptr;
    double replay_seconds = 0;
};

class FakeRun : public runtime::CapturedRun {
public:
    FakeRun(FakeDevice& device, std::function<c10::IValue()> run)
        : device_(device), bytes_(device.bytes), run_(std::move(run)) {
        outputs = run_();
    }
    void replay() override {
        const torch::NoGradGuard no_grad;
        const auto results = runtime::tensors_of(run_());
        if (device_.clock) {
            *device_.clock = *device_.clock + device_.replay_seconds - 1;
        }
        const auto own = runtime::tensors_of(outputs);
        for (std::size_t i = 0; i < own.size(); ++i) {
            own[i].copy_(device_.leaves_kernels_out ? results[i] * 0 : results[i]);
        }
    }
    std::size_t bytes() const override { return bytes_; }

private:
    FakeDevice& device_;
    std::size_t bytes_;
    std::function<c10::IValue()> run_;
};

class FakeLane : public runtime::GraphLane {
public:
    explicit FakeLane(FakeDevice& device) : device_(device) {}
    std::unique_ptr<runtime::CapturedRun> capture(const runtime::Recipe& recipe) override {
        ++device_.captures;
        recipe.prepare();
        c10::IValue outputs;
        for (int i = 0; i < recipe.warm_up; ++i) {
            outputs = recipe.run();
        }
        recipe.warmed(outputs);
        if (device_.fails) {
            device_.fails(device_.captures);
        }
        auto run = std::make_unique<FakeRun>(device_, recipe.run);
        run->replay();
        recipe.replayed(run->outputs);
        return run;
    }
    void enter() override {
        device_.most_inside = std::max(device_.most_inside.load(), ++device_.inside);
    }
    void leave() noexcept override { --device_.inside; }
    void wait() override {}
    std::size_t free_memory() override { return device_.free_memory; }
    void release_cached_memory() override {
        ++device_.released;
        if (device_.release_fails) {
            throw std::runtime_error("captures are under way");
        }
    }

private:
    FakeDevice& device_;
};

class FakeBackend : public runtime::GraphBackend {
public:
    FakeDevice device;

    bool stream_is_capturing(at::Device) override { return device.stream_is_capturing; }
    std::unique_ptr<runtime::GraphLane> lane(at::Device) override {
        if (device.has_failed) {
            throw std::runtime_error("CUDA error: an illegal memory access was encountered");
        }
        return std::make_unique<FakeLane>(device);
    }
    runtime::ModelGraphs::FindBackend finder() {
        return [this] { return runtime::FoundBackend{this, {}}; };
    }
};

// A model in evaluation with these methods; it has a weight of ones, and a buffer `seen` of zeros.
inline torch::jit::Module graph_model(const std::string& methods, bool training = false) {
    auto unit = std::make_shared<torch::jit::CompilationUnit>();
    torch::jit::Module module(c10::QualifiedName("__torch__.tests.Graphed"), unit, true);
    module.register_attribute("training", c10::BoolType::get(), training);
    module.register_attribute("count", c10::IntType::get(), 0);
    module.register_parameter("weight", torch::ones({4}), false);
    module.register_buffer("seen", torch::zeros({4}));
    module.define(methods);
    return module;
}

}  // namespace twinkle::tests
