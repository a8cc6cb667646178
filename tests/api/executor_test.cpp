// Operations with configurations, run by executors: what decides, and who is asked.

#include "api/tuned_operation.h"
#include "error_code.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <thread>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using tests::Cfg;
using tests::code_of;
using tests::in_memory;
using tests::Scale;
using tests::When;

TEST_CASE("an executor runs an operation with the rule's configuration, or with the given one") {
    const Executor executor = in_memory();
    const Scale scale;
    const at::Tensor x = torch::ones({4, 8});
    CHECK(at::equal(executor(scale, x, 2.0), x * 2));
    CHECK(scale.last == Cfg{.work = 40});
    CHECK(at::equal(executor(scale, x, 2.0, Cfg{.work = 3}), x * 2));
    CHECK(scale.last == Cfg{.work = 3});
    CHECK(executor.choose(scale, x, 2.0).by == ChosenBy::rule);
    const Invocation invocation = executor.invocation(scale, x, 2.0);
    CHECK(invocation.operation == "tests::scale");
    CHECK(invocation.inputs.at(0).sizes == std::vector<std::int64_t>{4, 8});
    CHECK(invocation.inputs.at(1) == AbstractInput{.dtype = "float"});
    CHECK(invocation.device == "cpu");
    CHECK(executor.key(scale, x, 2.0) == invocation.key());
    CHECK(default_key_builder(invocation) == invocation.key());
}

TEST_CASE("a policy is its thread's alone") {
    const Executor executor(
        ConfigSelectorChain(ConfigCache(), PersistentCache::none(), When::first_use));
    const Scale scale;
    const at::Tensor x = torch::ones({4, 8});
    const policy_override override(When::never);
    CHECK(executor.choose(scale, x, 2.0).by == ChosenBy::rule);
    std::thread([&] { CHECK(executor.choose(scale, x, 2.0).by == ChosenBy::measurement); }).join();
}

TEST_CASE("overlays of a thread") {
    const Executor executor = in_memory();
    const Scale scale;
    const at::Tensor x = torch::ones({4, 8});
    executor(scale, x, 2.0);
    {
        const overlay_cache overlay{{executor.key(scale, x, 2.0), to_json(Cfg{.work = 7})}};
        executor(scale, x, 2.0);
        CHECK(scale.last == Cfg{.work = 7});
        std::thread([&] { executor(scale, x, 2.0); }).join();
        CHECK(scale.last == Cfg{.work = 40});
    }
    executor(scale, x, 2.0);
    CHECK(scale.last == Cfg{.work = 40});
}

TEST_CASE("a cache of configurations that a program fills") {
    ConfigCache cache;
    const Executor executor(ConfigSelectorChain{cache});
    const Scale scale;
    const at::Tensor x = torch::ones({4, 8});
    executor(scale, x, 2.0);
    cache.put(executor.key(scale, x, 2.0), Cfg{.work = 5});
    CHECK(cache.contains(executor.key(scale, x, 2.0)));
    executor(scale, x, 2.0);  // what the thread remembers is no longer taken
    CHECK(scale.last == Cfg{.work = 5});
    CHECK(cache.get<Cfg>(executor.key(scale, x, 2.0)) == Cfg{.work = 5});
}

namespace {

struct Nothing {
    template <class Self, class Visit>
    static void fields(Self&, Visit&&) {}
};

struct ByPlatform : Operation<Nothing> {
    std::string name() const override { return "tests::by_platform"; }
    std::string run_cpu(const at::Tensor&, const Nothing&) const { return "cpu"; }
    std::string run_cuda(const at::Tensor&, const Nothing&) const { return "cuda"; }
};
struct GpuOnly : Operation<Nothing> {
    std::string name() const override { return "tests::gpu_only"; }
    std::string run_cuda(const at::Tensor&, const Nothing&) const { return "cuda"; }
};

}  // namespace

TEST_CASE("where nothing can be chosen nobody is asked") {
    class Selector final : public ConfigSelector {
    public:
        Choice choose(const Question&) override { throw std::logic_error("asked"); }
        void learn(const Question&, const Measurement&) override {}
        std::uint64_t version() const override { return 0; }
    };
    const Executor executor(std::make_shared<Selector>());
    CHECK(executor(ByPlatform(), torch::ones({2})) == "cpu");
    CHECK_THROWS_AS(executor(Scale(), torch::ones({2}), 2.0), std::logic_error);
}

TEST_CASE("operations by platform") {
    const Executor executor = in_memory();
    const at::Tensor x = torch::ones({2});
    CHECK(executor(ByPlatform(), x) == "cpu");
    CHECK(code_of([&] { executor(GpuOnly(), x); }) == ErrorCode::refused);
    CHECK(get_device_platform() == "cpu");
    CHECK(device_kind(at::kCPU) == "cpu");
    CHECK(device_kind({at::kCUDA, 3}) == "gpu");
    CHECK(get_device_platform({at::kCUDA, 1}) == "cuda");
    CHECK(code_of([] { device_kind(at::kMPS); }) == ErrorCode::malformed);
    CHECK(device_fingerprint().size() == 16);
    CHECK(device_fingerprint() == device_fingerprint(at::kCPU));
    CHECK(device_fingerprint({at::kCUDA, 0}) == device_fingerprint({at::kCUDA, 1}));
    CHECK(device_fingerprint() != device_fingerprint(at::kCUDA));
    const int threads = at::get_num_threads();
    const std::string before = device_fingerprint();
    at::set_num_threads(threads + 1);
    CHECK(device_fingerprint() != before);
    at::set_num_threads(threads);
}

namespace {

struct Every : Operation<Nothing> {
    std::string name() const override { return "tests::every"; }
    int run(const at::Tensor& x, const std::optional<at::Tensor>& y, bool flag, std::int64_t count,
            const std::string& text, const std::vector<at::Tensor>& list,
            const std::vector<std::int64_t>& sizes, const Nothing&) const {
        return static_cast<int>(
            x.dim() + (y ? y->dim() : 0) + flag + count +
            static_cast<std::int64_t>(text.size() + list.size() + sizes.size()));
    }
};

}  // namespace

TEST_CASE("arguments of all kinds decide") {
    const Executor executor = in_memory();
    const at::Tensor x = torch::ones({8, 8});
    const std::vector<at::Tensor> list{x, x};
    const std::vector<std::int64_t> sizes{1, 2, 3};
    const std::string text = "nearest";
    const auto key = [&](const auto&... args) { return executor.key(Every(), args...); };
    CHECK(executor(Every(), x, std::nullopt, true, 4, "ab", list, sizes) == 2 + 1 + 4 + 2 + 2 + 3);
    std::vector<std::string> keys{
        key(x, std::nullopt, true, 4, text, list, sizes),
        key(x, std::optional(x), true, 4, text, list, sizes),
        key(x, std::nullopt, false, 4, text, list, sizes),
        key(x, std::nullopt, true, 5, text, list, sizes),
        key(x, std::nullopt, true, 4, std::string("linear"), list, sizes),
        key(x, std::nullopt, true, 4, text, std::vector{x}, sizes),
        key(x, std::nullopt, true, 4, text, list, std::vector<std::int64_t>{1, 2}),
        key(x.t(), std::nullopt, true, 4, text, list, sizes),
        key(torch::ones({8, 16}).narrow(1, 0, 8), std::nullopt, true, 4, text, list, sizes),
        key(torch::ones({65})[0], std::nullopt, true, 4, text, list, sizes),
        key(torch::ones({64}).narrow(0, 1, 8), std::nullopt, true, 4, text, list, sizes),
        key(x.to(torch::kHalf), std::nullopt, true, 4, text, list, sizes),
        key(at::Tensor(), std::nullopt, true, 4, text, list, sizes)};
    std::sort(keys.begin(), keys.end());
    CHECK(std::unique(keys.begin(), keys.end()) == keys.end());
    CHECK(abstract_input(x.t()).layout == "strided");
    CHECK(abstract_input(torch::ones({8, 16}).narrow(1, 0, 8)).layout == "rows");
    CHECK(abstract_input(torch::ones({64}).narrow(0, 1, 8)).alignment == 4);
    CHECK(abstract_input(torch::ones({5, 5, 5})).sizes == std::vector<std::int64_t>{8, 8, 5});
    CHECK(abstract_inputs(1.5, true, std::nullopt).size() == 3);
}

TEST_CASE("one choice for a batch") {
    const Executor executor = in_memory();
    const Scale scale;
    const at::Tensor x = torch::randn({4, 5, 3});
    CHECK(at::equal(batch_with_config(executor, scale, {0, std::nullopt}, x, 2.0), x * 2));
    CHECK(scale.calls == 4);
    CHECK(at::equal(batch_with_config(executor, scale, {2, std::nullopt}, x, 2.0),
                    (x * 2).permute({2, 0, 1})));
    const auto fails = [&](const InAxes& axes) {
        return code_of([&] { batch_with_config(executor, scale, axes, x, 2.0); });
    };
    CHECK(fails({0}) == ErrorCode::malformed);
    CHECK(fails({3, std::nullopt}) == ErrorCode::malformed);
    CHECK(fails({0, 0}) == ErrorCode::malformed);
    CHECK(fails({std::nullopt, std::nullopt}) == ErrorCode::malformed);
}

TEST_CASE("one part a device, one choice") {
    ConfigSelectorChain chain{ConfigCache()};
    const Executor executor(chain);
    const Scale scale;
    const at::Tensor x = torch::randn({6, 4});
    const std::vector<c10::Device> devices{at::kCPU, at::kCPU, at::kCPU};
    const InAxes axes{0, std::nullopt};
    CHECK(at::equal(devices_with_config(executor, scale, devices, axes, 0, x, 2.0), x * 2));
    CHECK(scale.calls == 3);
    const std::string sharding = sharding_fingerprint(3, axes, {"cpu", "cpu", "cpu"});
    CHECK(sharding == "3 parts [0,-] on cpu");
    // Kept apart from undivided calls of the same size.
    const Executor divided = executor.with_sharding(sharding);
    const at::Tensor part = x.narrow(0, 0, 2);
    CHECK(divided.key(scale, part, 2.0) != executor.key(scale, part, 2.0));
    CHECK(divided.key(scale, part, 2.0) ==
          default_key_builder_with_sharding(executor.invocation(scale, part, 2.0), sharding));
    CHECK(code_of([&] {
              devices_with_config(executor, scale, {at::kCPU, at::kCPU, at::kCPU, at::kCPU}, axes,
                                  0, x, 2.0);
          }) == ErrorCode::malformed);
}

TEST_CASE("a key builder of the program's own") {
    ConfigCache cache;
    cache.put("tests::scale", Cfg{.work = 9});
    const Executor executor(
        ConfigSelectorChain{cache},
        {.key_builder = [](const Invocation& invocation) { return invocation.operation; }});
    const Scale scale;
    executor(scale, torch::ones({3}), 1.0);
    executor(scale, torch::ones({300}), 1.0);
    CHECK(scale.last == Cfg{.work = 9});
}

TEST_CASE("16 threads call one executor") {
    ConfigSelectorChain chain(ConfigCache(), PersistentCache::none(),
                              {When::first_use, std::chrono::minutes(10)});
    const Executor executor(chain, {.autotune = {.num_warmup = 1, .num_iters = 3}});
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 16; ++i) {
        threads.emplace_back([&] {
            const Scale scale;
            for (int rows = 1; rows < 40; ++rows) {
                const at::Tensor x = torch::ones({rows, 4});
                wrong += at::equal(executor(scale, x, 2.0), x * 2) ? 0 : 1;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(wrong == 0);
    CHECK(chain.cache().size() == 7);  // buckets
}

TEST_CASE("stable JSON") {
    CHECK(stable_json(R"({"b": 1, "a": 2.0})") == R"({"a":2.0,"b":1})");
    CHECK(stable_json(Cfg{.work = 3}) == to_json(Cfg{.work = 3}));
    CHECK(from_json<Cfg>(stable_json(Cfg{.work = 3})) == Cfg{.work = 3});
}
