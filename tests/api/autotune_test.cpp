// Configurations are measured: which wins, what is remembered, which are banned.

#include "api/tuned_operation.h"
#include "error_code.h"

#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>

#include <unistd.h>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using tests::Cfg;
using tests::code_of;
using tests::in_memory;
using tests::Scale;
using tests::When;

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
    CHECK(calls > 10);  // at least three turns of two; without measuring it would be one
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

namespace {

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
    const tests::Folder first, second;  // of which neither knows the other's measurements
    const Scale scale;
    const at::Tensor x = torch::randn({64, 64});
    std::vector<std::string> answers;
    for (const tests::Folder* folder : {&first, &second}) {
        for (int run = 0; run < 3; ++run) {
            const Executor executor(
                ConfigSelectorChain(ConfigCache(), PersistentCache(folder->path())));
            if (run == 0) {
                autotune(executor, scale, std::tuple(x, 2.0));
            }
            const Choice choice = executor.choose(scale, x, 2.0);
            CHECK(choice.by == (run == 0 ? ChosenBy::memory : ChosenBy::store));
            answers.push_back(choice.cfg);
        }
    }
    CHECK(answers == std::vector<std::string>(6, answers[0]));
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
