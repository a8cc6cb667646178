#pragma once
// Calls of operations (operation.h), each with the configuration that a selector chooses for it.

#include "twinkle/autotune.h"
#include "twinkle/call_arguments.h"
#include "twinkle/call_key.h"
#include "twinkle/device.h"
#include "twinkle/operation.h"
#include "twinkle/operation_trial.h"
#include "twinkle/record.h"
#include "twinkle/selector.h"

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

namespace twinkle {

struct ExecutorOptions {
    // Its calls are captured into CUDA graphs: they measure nothing. autotune() does, as graphs.
    bool captured = false;
    std::string sharding{};      // sharding_fingerprint() of its calls
    KeyBuilder key_builder{};    // default_key_builder
    AutotuneOptions autotune{};  // of measurements that its calls cause
};

// A handle; copies share their selector. Thread-safe where the selector and the operation are.
//
// A hit (a choice that this thread has had before, for arguments in the same buckets) takes about
// 100 ns and no lock. Inside of overlay_cache or policy_override every call asks the selector. An
// operation whose configuration has no members never does: there is nothing to choose.
class TWINKLE_API Executor {
public:
    // Looks in memory and the user's store, measuring nothing by itself.
    Executor();
    explicit Executor(ConfigSelectorChain chain, ExecutorOptions options = {});
    explicit Executor(std::shared_ptr<ConfigSelector> selector, ExecutorOptions options = {});

    ConfigSelector& selector() const { return *selector_; }
    const ExecutorOptions& options() const { return options_; }
    // The same selector for calls that are divided: their choices are kept apart.
    Executor with_sharding(std::string sharding) const {
        Executor divided = *this;
        divided.id_ ^= std::hash<std::string>()(sharding) | 1;
        divided.options_.sharding = std::move(sharding);
        return divided;
    }

    // The arguments of the operation; after them perhaps a configuration, which is taken then.
    template <AnOperation Op, class... Args>
    auto operator()(const Op& op, const Args&... args) const;

    // What a call would be given, and by whom. Runs nothing but measurements that the policy
    // allows.
    template <AnOperation Op, class... Args>
    Choice choose(const Op& op, const Args&... args) const {
        return selector_->choose(question<false>(op, mode_of(args...), args...));
    }
    template <AnOperation Op, class... Args>
    Invocation invocation(const Op& op, const Args&... args) const {
        return invocation_of(op.name(), mode_of(args...), args...);
    }
    template <AnOperation Op, class... Args>
    std::string key(const Op& op, const Args&... args) const {
        return key_of(invocation(op, args...));
    }

    // The configuration of a call without running it.
    template <AnOperation Op, class... Args>
    typename Op::Config cfg(const Op& op, const Args&... args) const {
        return chosen<false>(op, mode_of(args...), args...);
    }
    // Runs with this configuration.
    template <AnOperation Op, class... Args>
    auto run_with(const Op& op, const typename Op::Config& cfg, const Args&... args) const;

    // Internal: a choice for a forward or a backward pass.
    template <bool backward, AnOperation Op, class... Args>
    auto chosen(const Op& op, RunMode mode, const Args&... args) const ->
        typename detail::Direction<Op, backward>::Cfg;
    template <bool backward, AnOperation Op, class... Args>
    Question question(const Op& op, RunMode mode, const Args&... args) const;

private:
    template <class... Args>
    static RunMode mode_of(const Args&... args) {
        return detail::wants_gradients(args...) ? RunMode::forward : RunMode::inference;
    }
    template <class... Args>
    Invocation invocation_of(const std::string& name, RunMode mode, const Args&... args) const {
        Invocation invocation{
            .operation = name,
            .inputs = abstract_inputs(args...),
            .device = std::string(detail::platform_of(detail::first_tensor(args...))),
            .mode = mode,
            .captured = options_.captured};
        if (!options_.sharding.empty()) {
            invocation.extras["sharding"] = options_.sharding;
        }
        return invocation;
    }
    std::string key_of(const Invocation& invocation) const;

    std::shared_ptr<ConfigSelector> selector_;
    ExecutorOptions options_;
    std::uint64_t id_;  // of selector and options together
};

// Measures the configurations of an operation with these arguments, and keeps nothing.
template <AnOperation Op, class... Args>
Tuned<typename Op::Config> autotune(const Op& op, const std::tuple<Args...>& args,
                                    const AutotuneOptions& options = {});
// The same, and the selector of the executor learns it: memory and store. Throws Error(refused)
// where its policy says never.
template <AnOperation Op, class... Args>
Tuned<typename Op::Config> autotune(const Executor& executor, const Op& op,
                                    const std::tuple<Args...>& args,
                                    const AutotuneOptions& options = {});

namespace detail {
// Throws Error(refused) where nothing is left.
TWINKLE_API const std::string& best_of(const std::string& operation,
                                       const Measurement& measurement);
}  // namespace detail

template <AnOperation Op, class... Args>
Tuned<typename Op::Config> autotune(const Executor& executor, const Op& op,
                                    const std::tuple<Args...>& args,
                                    const AutotuneOptions& options) {
    return std::apply(
        [&](const auto&... own) {
            const RunMode mode =
                detail::wants_gradients(own...) ? RunMode::forward : RunMode::inference;
            const Question question = executor.question<false>(op, mode, own...);
            Measurement measurement = detail::measure(
                detail::trial_of<Op, false>(op, question.invocation, own...), options);
            executor.selector().learn(question, measurement);
            const std::string& best = detail::best_of(op.name(), measurement);
            auto cfg = from_json<typename Op::Config>(best);
            return Tuned<typename Op::Config>{std::move(cfg), std::move(measurement)};
        },
        args);
}

template <AnOperation Op, class... Args>
Tuned<typename Op::Config> autotune(const Op& op, const std::tuple<Args...>& args,
                                    const AutotuneOptions& options) {
    return autotune(Executor(ConfigSelectorChain(ConfigCache())), op, args, options);
}

}  // namespace twinkle

#include "twinkle/executor_impl.h"
#include "twinkle/record_impl.h"
