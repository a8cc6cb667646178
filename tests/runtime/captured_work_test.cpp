// Work that is measured as a graph: on a device of the CPU, whose replays run it again.
#include "runtime/replay/captured_work.h"
#include "catch.h"
#include "runtime/fake_graphs.h"
#include "runtime/scripted.h"
#include "runtime/verify/contest_times.h"

#include <chrono>
#include <stdexcept>

using namespace twinkle::runtime;
using twinkle::tests::FakeBackend;

namespace {

void take(std::chrono::microseconds time) {
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < time) {
    }
}

}  // namespace

TEST_CASE("short work is in its graph several times, long work once") {
    FakeBackend backend;
    const CaptureWork capture = work_capturer(backend.finder(), at::kCPU);
    int runs = 0;
    const auto brief = [&] { ++runs; };
    const RepeatedWork graph = capture(brief, 0);
    CHECK(graph.times == 32);
    runs = 0;
    graph.run();
    CHECK(runs == 32);
    CHECK(capture([] { take(std::chrono::milliseconds(1)); }, 0).times == 1);
    CHECK(capture(brief, 3).times == 3);
    CHECK(backend.device.captures == 3);
}

TEST_CASE("work that cannot be captured says why") {
    FakeBackend backend;
    backend.device.fails = [](int capture) {
        if (capture == 2) {
            throw std::runtime_error("it waits for the device");
        }
    };
    const CaptureWork capture = work_capturer(backend.finder(), at::kCPU);
    capture([] {}, 1);
    CHECK_THROWS_WITH(capture([] {}, 1), "it waits for the device");
    const CaptureWork none =
        work_capturer([] { return FoundBackend{nullptr, "there is no GPU"}; }, at::kCPU);
    CHECK_THROWS_WITH(none([] {}, 1), "there is no GPU");
}

TEST_CASE("sites are measured as graphs where their original can be captured") {
    FakeBackend backend;
    int refused = 0;  // the capture that fails
    backend.device.fails = [&](int capture) {
        if (capture == refused) {
            throw std::runtime_error("it waits for the device");
        }
    };
    const auto module = twinkle::tests::module_of("Timed", "def forward(self, x):\n    return x\n");
    const Inputs inputs{{torch::ones({2})}, {}};
    VerificationContext context;
    context.sampling = Sampling{.runs = 3};
    context.capture = work_capturer(backend.finder(), at::kCPU);
    const auto times = [&] {
        return contest_times({module, {module.deepcopy()}, {{"forward", inputs}}}, context, {},
                             [] {});
    };
    const Samples samples = times();
    CHECK(backend.device.captures == 2);
    REQUIRE(samples.size() == 2);
    CHECK(samples[1].size() == 3);
    refused = 3;  // the original: nothing is captured, and nothing is wrong
    CHECK(times().size() == 2);
    CHECK(backend.device.captures == 3);
    refused = 5;  // the candidate
    CHECK_THROWS_WITH(times(), "it waits for the device");
    context.steps = true;  // a backward pass is no part of a graph
    context.capture = [](const std::function<void()>&, std::size_t) -> RepeatedWork {
        throw std::logic_error("captured");
    };
    CHECK_NOTHROW(times());
}
