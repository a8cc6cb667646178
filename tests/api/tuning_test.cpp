// Operations with configurations, through the public headers alone.

#include "twinkle/tuning.h"
#include "twinkle/twinkle.h"

#include "api/package.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <unistd.h>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using When = TuningPolicy::When;

namespace {

struct Cfg {
    int work = 1;  // more is slower
    bool wrong = false;
    bool throws = false;
    template <class Self, class Visit>
    static void fields(Self& self, Visit&& visit) {
        visit("work", self.work);
        visit("wrong", self.wrong);
        visit("throws", self.throws);
    }
    bool operator==(const Cfg&) const = default;
};

// x * factor, and what a call has seen.
struct Scale : Operation<Cfg> {
    std::string name() const override { return "tests::scale"; }
    std::string build() const override { return version; }
    Cfg heuristic_cfg(const Invocation&) const override { return {.work = 40}; }
    std::vector<Cfg> config_space(const Invocation& invocation) const override {
        seen = invocation;
        return {{.work = 40}, {.work = 1}, {.work = 1, .wrong = true}, {.work = 1, .throws = true}};
    }
    at::Tensor run(const at::Tensor& x, double factor, const Cfg& cfg) const {
        ++calls;
        last = cfg;
        if (cfg.throws) {
            throw std::runtime_error("this configuration does not work");
        }
        at::Tensor y = x;
        for (int i = 0; i < cfg.work * 20; ++i) {
            y = x * factor;
        }
        return cfg.wrong ? y + 1 : y;
    }
    std::string version = "1";
    mutable std::atomic<int> calls = 0;
    mutable Cfg last;
    mutable Invocation seen;

    Scale() = default;
    Scale(const Scale& other) : Operation(other), version(other.version) {}
};

Executor in_memory(TuningPolicy policy = When::offline) {
    return Executor(ConfigSelectorChain(ConfigCache(), PersistentCache::none(), policy));
}

template <class Call>
ErrorCode code_of(const Call& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.code();
    }
    throw std::runtime_error("no error");
}

}  // namespace

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

TEST_CASE("autotune takes the fastest that is right") {
    const Scale scale;
    const at::Tensor x = torch::randn({64, 64});
    const auto tuned = autotune(scale, std::tuple(x, 2.0), {.num_warmup = 3, .num_iters = 10});
    CHECK(tuned.cfg == Cfg{.work = 1});
    REQUIRE(tuned.measurement.candidates.size() == 4);
    CHECK(tuned.measurement.best == 1);
    const auto& all = tuned.measurement.candidates;
    CHECK(from_json<Cfg>(all[0].cfg) == Cfg{.work = 40});
    CHECK(all[0].runs >= 3);
    CHECK(all[0].runs <= 10);
    CHECK(all[1].runs >= 3);  // until nobody was left to compare it with
    CHECK(all[1].median_us > 0);
    CHECK(all[1].lower_us <= all[1].median_us);
    CHECK(all[1].median_us < all[0].median_us);
    CHECK(all[2].problem == "wrong values");
    CHECK(all[2].runs == 0);
    CHECK_THAT(all[3].problem, ContainsSubstring("this configuration does not work"));
    CHECK(scale.seen.operation == "tests::scale");
}

TEST_CASE("what autotune learns, calls of the executor get") {
    const tests::Folder folder;
    const PersistentCache store(folder.path());
    const at::Tensor x = torch::randn({64, 64});
    const Scale scale;
    {
        const Executor executor(ConfigSelectorChain(ConfigCache(), store));
        executor(scale, x, 2.0);
        CHECK(scale.last == Cfg{.work = 40});
        autotune(executor, scale, std::tuple(x, 2.0));
        executor(scale, x, 2.0);
        CHECK(scale.last == Cfg{.work = 1});
        executor(scale, torch::randn({50, 64}), 3.0);  // the same bucket
        CHECK(scale.last == Cfg{.work = 1});
        executor(scale, torch::randn({64, 65}), 3.0);
        CHECK(scale.last == Cfg{.work = 40});
    }
    const Executor later(ConfigSelectorChain(ConfigCache(), store));
    CHECK(later.choose(scale, x, 2.0).by == ChosenBy::store);
    later(scale, x, 2.0);
    CHECK(scale.last == Cfg{.work = 1});
    Scale newer;
    newer.version = "2";
    CHECK(later.choose(newer, x, 2.0).by == ChosenBy::memory);  // of this process
    CHECK(Executor(ConfigSelectorChain(ConfigCache(), store)).choose(newer, x, 2.0).by ==
          ChosenBy::rule);
    CHECK(code_of([&] {
              const policy_override never(When::never);
              autotune(later, scale, std::tuple(x, 2.0));
          }) == ErrorCode::refused);
}

TEST_CASE("what a store says that the operation does not know is not believed") {
    const tests::Folder folder;
    const PersistentCache store(folder.path());
    const Scale scale;
    const at::Tensor x = torch::randn({64, 64});
    const Invocation invocation =
        Executor(ConfigSelectorChain(ConfigCache(), store)).invocation(scale, x, 2.0);
    const auto keep = [&](const std::string& other) {
        store.store()->keep(invocation, scale.build(),
                            {{{to_json(Cfg{.work = 40}), 9, 9, 9, 10}, {other, 1, 1, 1, 10}}, 1});
        const Executor executor(ConfigSelectorChain(ConfigCache(), store));
        executor(scale, x, 2.0);
        return scale.last;
    };
    CHECK(keep(to_json(Cfg{.work = 1'000'000})) == Cfg{.work = 40});
    CHECK(keep(R"({"threads":1})") == Cfg{.work = 40});
    CHECK(keep(to_json(Cfg{.work = 1})) == Cfg{.work = 1});
}

TEST_CASE("first use measures, the next call does not") {
    const Executor executor = in_memory(When::first_use);
    const Scale scale;
    const at::Tensor x = torch::randn({32, 32});
    CHECK(at::equal(executor(scale, x, 2.0), x * 2));
    CHECK(scale.last == Cfg{.work = 1});
    const int calls = scale.calls;
    CHECK(calls > 20);
    executor(scale, x, 2.0);
    CHECK(scale.calls == calls + 1);
}

TEST_CASE("in the background calls go on") {
    ConfigSelectorChain chain(ConfigCache(), PersistentCache::none(), When::background);
    const Executor executor(chain);
    const Scale scale;
    at::Tensor x = torch::randn({32, 32});
    executor(scale, x, 2.0);
    CHECK(scale.last == Cfg{.work = 40});
    x.zero_();  // not the one that is measured with
    chain.wait();
    executor(scale, x, 2.0);
    CHECK(scale.last == Cfg{.work = 1});
}

TEST_CASE("overlays and policies of a thread") {
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

namespace {

// y = x * w, whose gradients are its own.
struct Product : Operation<FwdParams, BwdParams> {
    std::string name() const override { return "tests::product"; }
    BwdParams heuristic_backward_cfg(const Invocation& invocation) const override {
        backward = invocation;
        return {{.num_warps = 8}};
    }
    std::vector<BwdParams> backward_config_space(const Invocation&) const override {
        return {{{.num_warps = 2}}};
    }
    at::Tensor run(const at::Tensor& x, const std::optional<at::Tensor>& w, double,
                   const FwdParams&) const {
        return w ? x * *w : x.clone();
    }
    std::vector<at::Tensor> vjp(const std::vector<at::Tensor>& grads, const at::Tensor& x,
                                const std::optional<at::Tensor>& w, double factor,
                                const BwdParams& cfg) const {
        last = cfg;
        // `factor` shows that these gradients are taken, and not those of run.
        return {grads[0] * factor * (w ? *w : at::ones({1})), w ? grads[0] * x : at::Tensor()};
    }
    mutable Invocation backward;
    mutable BwdParams last;
};

}  // namespace

TEST_CASE("an operation with a vjp has its own gradients, chosen for by themselves") {
    ConfigSelectorChain chain{ConfigCache()};
    const Executor executor(chain);
    const Product product;
    at::Tensor x = torch::randn({3, 4});
    at::Tensor w = torch::randn({3, 4});
    CHECK(at::equal(executor(product, x, std::optional(w), 10.0), x * w));
    x.requires_grad_();
    w.requires_grad_();
    CHECK(executor.invocation(product, x, std::optional(w), 10.0).mode == RunMode::forward);
    const at::Tensor y = executor(product, x, std::optional(w), 10.0);
    REQUIRE(y.requires_grad());
    y.sum().backward();
    CHECK(at::allclose(x.grad(), w * 10));
    CHECK(at::allclose(w.grad(), x));
    const at::Tensor alone = executor(product, x, std::nullopt, 5.0);
    x.mutable_grad().zero_();
    alone.sum().backward();
    CHECK(at::allclose(x.grad(), at::full({3, 4}, 5.0)));
    {
        const at::NoGradGuard no_gradients;
        CHECK_FALSE(executor(product, x, std::optional(w), 10.0).requires_grad());
    }
    const at::Tensor again = executor(product, x, std::optional(w), 1.0);
    CHECK_THROWS(torch::autograd::grad({again.sum()}, {x}, {}, true, /*create_graph=*/true));
}

TEST_CASE("backward configurations are measured and remembered apart") {
    ConfigSelectorChain chain(ConfigCache(), PersistentCache::none(), When::first_use);
    const Executor executor(chain);
    const Product product;
    const at::Tensor x = torch::randn({3, 4}).requires_grad_();
    executor(product, x, std::nullopt, 5.0).sum().backward();
    CHECK(chain.cache().size() == 2);
    CHECK(chain.warnings().empty());
}

namespace {

// Writes into its argument.
struct AddOne : Operation<Cfg> {
    std::string name() const override { return "tests::add_one"; }
    std::vector<Cfg> config_space(const Invocation&) const override {
        return {{.work = 2}, {.wrong = true}};
    }
    void run(const at::Tensor& x, const Cfg& cfg) const { x.add_(cfg.wrong ? 2 : 1); }
};

}  // namespace

TEST_CASE("what an operation writes is put back between measurements") {
    const at::Tensor x = torch::zeros({16});
    const auto tuned = autotune(AddOne(), std::tuple(x));
    CHECK(at::equal(x, torch::zeros({16})));
    CHECK(tuned.measurement.candidates.at(1).problem.empty());
    CHECK(tuned.measurement.candidates.at(2).problem == "wrong values");
}

TEST_CASE("calls are recorded without their data, and tuned later") {
    clear_invocations();
    const Executor executor = in_memory();
    const Scale scale;
    const at::Tensor x = torch::randn({64, 64});
    executor(scale, x, 2.0);
    CHECK(get_invocations().empty());
    {
        const recording scope;
        executor(scale, x, 2.0);
        executor(scale, x, 2.0);
        executor(scale, torch::randn({128, 64}), 2.0);
    }
    executor(scale, torch::randn({256, 64}), 2.0);
    CHECK(get_invocations().size() == 2);
    CHECK(get_invocations().front() == executor.invocation(scale, x, 2.0));
    record_invocation({.operation = "by hand"});
    const auto tuned = autotune_recorded(executor);
    REQUIRE(tuned.size() == 3);
    CHECK(tuned[0].measurement.best == 1);
    CHECK(tuned[1].measurement.best == 1);
    CHECK_THAT(tuned[2].problem, ContainsSubstring("by hand"));
    CHECK(executor.choose(scale, x, 2.0).by == ChosenBy::memory);
    const policy_override never(When::never);
    CHECK(code_of([&] { autotune_recorded(executor); }) == ErrorCode::refused);
    clear_invocations();
    for (int i = 0; i < 10'005; ++i) {
        record_invocation({.operation = std::to_string(i)});
    }
    CHECK(get_invocations().size() == 10'000);
    CHECK(lost_invocations() == 5);
    clear_invocations();
}

namespace {

struct OwnFolder {
    std::filesystem::path path;
    OwnFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "twinkle_XXXXXX").string();
        path = ::mkdtemp(name.data());
    }
    ~OwnFolder() { std::filesystem::remove_all(path); }
    OwnFolder(const OwnFolder&) = delete;
    OwnFolder& operator=(const OwnFolder&) = delete;
    std::filesystem::path operator/(const std::string& name) const { return path / name; }
};

// One of each kind of candidate that a tuner must survive.
struct BadCfg {
    std::string kind = "good";
    template <class Self, class Visit>
    static void fields(Self& self, Visit&& visit) {
        visit("kind", self.kind);
    }
};

struct Suspicious : Operation<BadCfg> {
    std::vector<std::string> kinds;
    explicit Suspicious(std::vector<std::string> all) : kinds(std::move(all)) {}

    std::string name() const override { return "tests::suspicious"; }
    BadCfg heuristic_cfg(const Invocation&) const override { return {.kind = "slow"}; }
    std::vector<BadCfg> config_space(const Invocation&) const override {
        std::vector<BadCfg> all;
        for (const std::string& kind : kinds) {
            all.push_back({kind});
        }
        return all;
    }
    at::Tensor run(const at::Tensor& x, const BadCfg& cfg) const {
        static int first_runs = 0;
        const auto sleep = [](int ms) {
            std::this_thread::sleep_for(std::chrono::milliseconds(ms));
        };
        if (cfg.kind == "crashing") {
            std::abort();
        } else if (cfg.kind == "hanging") {
            sleep(3'600'000);
        } else if (cfg.kind == "wrong") {
            return x * 3;
        } else if (cfg.kind == "shape-dependent") {
            return x.size(0) == 64 ? x * 3 : x * 2;
        } else if (cfg.kind == "slow at first") {
            sleep(first_runs++ < 3 ? 50 : 0);
        } else if (cfg.kind == "slow") {
            sleep(4);
        }
        return x * 2;
    }
};

std::map<std::string, std::string> problems_of(const Measurement& measurement) {
    std::map<std::string, std::string> problems;
    for (const MeasuredCfg& one : measurement.candidates) {
        problems[from_json<BadCfg>(one.cfg).kind] = one.problem;
    }
    return problems;
}

}  // namespace

TEST_CASE("a candidate that crashes, hangs or is wrong is banned, and the tuner goes on") {
    const Suspicious operation({"crashing", "hanging", "wrong", "slow at first"});
    const at::Tensor x = torch::ones({64, 8});
    const auto tuned = autotune(operation, std::tuple(x), {.child_seconds = 0.5});
    auto problems = problems_of(tuned.measurement);
    CHECK_THAT(problems["crashing"], ContainsSubstring("aborted"));
    CHECK_THAT(problems["hanging"], ContainsSubstring("hung"));
    CHECK(problems["wrong"] == "wrong values");
    CHECK(problems["slow"].empty());
    CHECK(tuned.cfg.kind == "slow at first");  // its first runs are no part of what is measured
}

TEST_CASE("a candidate that is wrong for one shape is banned for that alone") {
    const Executor executor = in_memory();
    const Suspicious operation({"shape-dependent"});
    CHECK(autotune(executor, operation, std::tuple(torch::ones({64, 8}))).cfg.kind == "slow");
    CHECK(autotune(executor, operation, std::tuple(torch::ones({16, 8}))).cfg.kind ==
          "shape-dependent");
    CHECK(executor.cfg(operation, torch::ones({64, 8})).kind == "slow");
    CHECK(executor.cfg(operation, torch::ones({15, 8})).kind == "shape-dependent");
}

TEST_CASE("where not even the rule's configuration runs in a child, nothing is banned for that") {
    const pid_t here = ::getpid();
    struct OwnProcess : Operation<Cfg> {
        pid_t process;
        std::string name() const override { return "tests::own_process"; }
        std::vector<Cfg> config_space(const Invocation&) const override { return {{.work = 2}}; }
        at::Tensor run(const at::Tensor& x, const Cfg&) const {
            if (::getpid() != process) {
                std::abort();
            }
            return x * 2;
        }
    } operation;
    operation.process = here;
    const auto tuned = autotune(operation, std::tuple(torch::ones({4})));
    CHECK(tuned.measurement.candidates.at(1).problem.empty());
}

TEST_CASE("two tunings agree, and a replay is identical") {
    const OwnFolder folder;
    const Scale scale;
    const at::Tensor x = torch::randn({64, 64});
    std::vector<std::string> answers;
    for (int run = 0; run < 3; ++run) {
        const Executor executor(ConfigSelectorChain(ConfigCache(), PersistentCache(folder.path)));
        if (run == 0) {
            autotune(executor, scale, std::tuple(x, 2.0));
        }
        const Choice choice = executor.choose(scale, x, 2.0);
        CHECK(choice.by == (run == 0 ? ChosenBy::memory : ChosenBy::store));
        answers.push_back(choice.cfg);
    }
    CHECK(answers[1] == answers[0]);
    CHECK(answers[2] == answers[0]);
}

TEST_CASE("calls are recorded in a file, of executors and of kernelized models alone") {
    const OwnFolder folder;
    const auto file = folder / "calls.jsonl";
    torch::jit::Module plain("Plain"), kernelized("Kernelized");
    plain.define("def forward(self, x):\n    return x + 1\n");
    kernelized.register_attribute("twinkle_labels", c10::StringType::get(), "{}");
    kernelized.define("def forward(self, x, y: Optional[Tensor] = None):\n    return x * 2\n");
    const Executor executor = in_memory();
    const Scale scale;
    {
        const recording scope(file);
        CHECK(code_of([&] { const recording second(folder / "other.jsonl"); }) ==
              ErrorCode::refused);
        for (int i = 0; i < 3; ++i) {
            plain.forward({torch::ones({2, 3})});
            kernelized.forward({torch::ones({2, 3})});
            kernelized.forward({torch::ones({60, 3})});
            kernelized.forward({torch::ones({61, 3})});  // the same power of two
            kernelized.forward({torch::ones({7}, torch::kLong)});
            executor(scale, torch::randn({64, 64}), 2.0);
        }
        std::thread([&] { kernelized.forward({torch::ones({2, 3})}); }).join();
    }
    kernelized.forward({torch::ones({2, 4})});
    const std::string text{std::istreambuf_iterator<char>(std::ifstream(file).rdbuf()), {}};
    CHECK_THAT(text,
               ContainsSubstring(R"({"inputs":"float32[2,3]","model":"Kernelized","record":1})"));
    CHECK_THAT(text, ContainsSubstring(R"("float32[60,3]")"));
    CHECK_THAT(text, ContainsSubstring(R"("int64[7]")"));
    CHECK_THAT(text, ContainsSubstring("tests::scale"));
    std::size_t runs = 0;
    for (auto at = text.find("\"inputs\":\""); at != std::string::npos; ++runs) {
        at = text.find("\"inputs\":\"", at + 1);
    }
    CHECK(runs == 3);
    CHECK_FALSE(std::filesystem::exists(folder / "other.jsonl"));
    CHECK(code_of([&] { const recording nowhere(folder / "no/calls.jsonl"); }) ==
          ErrorCode::failed);
}

TEST_CASE("a recorded call of a bundled kernel is repeated and tuned") {
    const Executor executor(ops::selector());
    const Invocation invocation{
        .operation = "twinkle-pack::rms_norm",
        .inputs = {{.dtype = "float32", .sizes = {16, 64}, .layout = "dense", .alignment = 16},
                   {.dtype = "none"},
                   {.dtype = "float"},
                   {.dtype = "float"},
                   {.dtype = "bool", .value = "false"}}};
    const Measurement measured = ops::tune_recorded(invocation, {.num_iters = 3});
    CHECK(measured.candidates.size() >= 2);
    Invocation other = invocation;
    other.inputs.pop_back();
    CHECK(code_of([&] { ops::tune_recorded(other); }) == ErrorCode::malformed);
    other = invocation;
    other.inputs[0].sizes = {1 << 30, 1 << 30};
    CHECK(code_of([&] { ops::tune_recorded(other); }) == ErrorCode::malformed);
    other.operation = "mine::norm";
    CHECK(code_of([&] { ops::tune_recorded(other); }) == ErrorCode::not_found);
}

TEST_CASE("labels are found in a model, and turned back into configurations") {
    const std::string text =
        R"({"schema":"twinkle.labels/1","sites":[{"site":"norm","kind":"layer","of":"RMSNorm",
        "because":"faster","serves":[{"from":0,"up_to":32,"kernel":"a: Norm","build":"ab",
        "cfg":{"layer":"Norm","grain":4096}},{"from":33,"up_to":null,"kernel":null,"build":null,
        "cfg":null}]},{"site":3},7]})";
    torch::jit::Module model("Labelled");
    CHECK(find_labels(model).empty());
    model.register_attribute("twinkle_labels", c10::StringType::get(), text);
    const auto labels = find_labels(model);
    REQUIRE(labels.size() == 1);
    CHECK(labels[0].of == "RMSNorm");
    REQUIRE(labels[0].serves.size() == 2);
    CHECK(labels[0].serves[0].up_to == 32);
    CHECK(labels[0].serves[1].from == 33);
    CHECK(labels[0].serves[1].kernel.empty());
    CHECK(find_labels(R"({"labels":)" + text.substr(text.find('['))).size() == 1);
    CHECK(code_of([] { find_labels("no JSON"); }) == ErrorCode::malformed);
    const auto configs = labels_to_configs(labels);
    const CfgFields expected{{"layer", "Norm"}, {"grain", std::int64_t{4096}}};
    CHECK((configs.at("norm").at(0).cfg == expected));
    CHECK(configs.at("norm").at(1).cfg.empty());
    CHECK_FALSE(configs.at("norm").at(1).up_to);
}

TEST_CASE("a label is a range of the profiler") {
    static std::vector<std::string> seen;
    const auto callback = at::addGlobalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& function)
                                       -> std::unique_ptr<at::ObserverContext> {
            seen.emplace_back(function.name());
            return nullptr;
        }).scopes({at::RecordScope::USER_SCOPE}));
    {
        const label scope("decoding");
        torch::ones({2}).add(1);
    }
    at::removeCallback(callback);
    CHECK(seen == std::vector<std::string>{"decoding"});
}

TEST_CASE("stable JSON") {
    CHECK(stable_json(R"({"b": 1, "a": 2.0})") == R"({"a":2.0,"b":1})");
    CHECK(stable_json(Cfg{.work = 3}) == to_json(Cfg{.work = 3}));
    CHECK(from_json<Cfg>(stable_json(Cfg{.work = 3})) == Cfg{.work = 3});
}

TEST_CASE("benchmark") {
    int runs = 0;
    const BenchmarkTimes times = benchmark(
        [&] {
            ++runs;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        },
        {.num_iters = 10});
    CHECK(times.runs == 10);
    CHECK(runs >= 10);
    CHECK(times.median_us >= 1000);
    CHECK(times.lower_us <= times.upper_us);
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
