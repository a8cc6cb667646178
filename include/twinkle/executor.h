#pragma once
// Calls of operations (operation.h), each with the configuration that a selector chooses for it.

#include "twinkle/autotune.h"
#include "twinkle/call_key.h"
#include "twinkle/device.h"
#include "twinkle/operation.h"
#include "twinkle/record.h"
#include "twinkle/selector.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <algorithm>
#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace twinkle {

struct ExecutorOptions {
    bool captured = false;     // its calls are captured into CUDA graphs; nothing is measured then
    std::string sharding{};    // sharding_fingerprint() of its calls
    KeyBuilder key_builder{};  // default_key_builder
    AutotuneOptions autotune{};  // of measurements that its calls cause
};

namespace detail {

// Choices of this thread, found without a lock.
TWINKLE_API const void* quick_choice(std::uint64_t executor, std::uint64_t operation,
                                     std::uint64_t version, const CallKey& key);
TWINKLE_API void remember_choice(std::uint64_t executor, std::uint64_t operation,
                                 std::uint64_t version, const CallKey& key,
                                 std::shared_ptr<const void> cfg);
TWINKLE_API std::string_view platform_of(const at::Tensor* first);

template <class... Args>
const at::Tensor* first_tensor(const Args&... args) {
    const at::Tensor* first = nullptr;
    const auto take = [&](const at::Tensor& tensor) { first = first ? first : &tensor; };
    (for_each_tensor(take, args), ...);
    return first;
}

template <class... Args>
bool wants_gradients(const Args&... args) {
    bool wanted = false;
    if (at::GradMode::is_enabled()) {
        const auto look = [&](const at::Tensor& tensor) { wanted |= tensor.requires_grad(); };
        (for_each_tensor(look, args), ...);
    }
    return wanted;
}

// Values that outlive the call; of views, nothing to copy is known.
template <class T>
inline constexpr bool is_view = !std::same_as<T, std::string> && !std::same_as<T, at::Tensor> &&
                                (std::is_pointer_v<T> || std::is_array_v<T> ||
                                 std::same_as<T, std::string_view> || requires(const T& list) {
                                     list.equals(list);
                                     list.vec();
                                 });

template <class T>
T copied(const T& argument) {
    if constexpr (std::same_as<T, at::Tensor>) {
        return argument.defined() ? argument.detach().clone() : argument;
    } else if constexpr (std::same_as<T, std::optional<at::Tensor>>) {
        return argument.has_value() ? T(copied(*argument)) : argument;
    } else if constexpr (Tensors<T>) {
        T copies = argument;
        for (auto& tensor : copies) {
            tensor = copied(tensor);
        }
        return copies;
    } else {
        return argument;
    }
}

// Forward or backward of an operation, as one thing to choose for.
template <class Op, bool backward>
struct Direction {
    using Cfg = std::conditional_t<backward, typename Op::BackwardConfig, typename Op::Config>;

    static Cfg heuristic(const Op& op, const Invocation& invocation) {
        if constexpr (backward) {
            return op.heuristic_backward_cfg(invocation);
        } else {
            return op.heuristic_cfg(invocation);
        }
    }
    static std::vector<Cfg> space(const Op& op, const Invocation& invocation) {
        if constexpr (backward) {
            return op.backward_config_space(invocation);
        } else {
            return op.config_space(invocation);
        }
    }
    // In a backward pass the gradients come first.
    template <class... Args>
    static auto run(const Op& op, std::string_view platform, const Cfg& cfg, const Args&... args) {
        if constexpr (backward) {
            return op.vjp(args..., cfg);
        } else {
            return run_operation(op, platform, cfg, args...);
        }
    }
};

// The heuristic's first, each once.
template <class Op, bool backward>
auto candidates(const Op& op, const Invocation& invocation) {
    using Way = Direction<Op, backward>;
    std::vector<typename Way::Cfg> all = {Way::heuristic(op, invocation)};
    std::vector<std::string> texts = {to_json(all.front())};
    for (auto& cfg : Way::space(op, invocation)) {
        std::string text = to_json(cfg);
        if (std::find(texts.begin(), texts.end(), text) == texts.end()) {
            texts.push_back(std::move(text));
            all.push_back(std::move(cfg));
        }
    }
    return all;
}

template <class Op, bool backward, class... Args>
Trial trial_of(const Op& op, const Invocation& invocation, const Args&... args) {
    using Way = Direction<Op, backward>;
    Trial trial{.build = op.build()};
    auto distinct = candidates<Op, backward>(op, invocation);
    for (const auto& cfg : distinct) {
        trial.cfgs.push_back(to_json(cfg));
    }
    const auto keep = [&](const at::Tensor& tensor) { trial.tensors.push_back(tensor); };
    (for_each_tensor(keep, args), ...);
    trial.run = [&op, platform = invocation.device, distinct = std::move(distinct),
                 &args...](std::size_t candidate) {
        std::vector<at::Tensor> results;
        if constexpr (std::is_void_v<decltype(Way::run(op, platform, distinct[0], args...))>) {
            Way::run(op, platform, distinct[candidate], args...);
        } else {
            append_tensors(results, Way::run(op, platform, distinct[candidate], args...));
        }
        return results;
    };
    return trial;
}

}  // namespace detail

// A handle; copies share their selector. Thread-safe where the selector and the operation are.
//
// A hit (a choice that this thread has had before, for arguments in the same buckets) takes about
// 100 ns and no lock. Inside of overlay_cache or policy_override every call asks the selector.
class TWINKLE_API Executor {
public:
    // In memory and the user's store, measuring nothing by itself.
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
    Invocation invocation_of(std::string name, RunMode mode, const Args&... args) const {
        Invocation invocation{
            .operation = std::move(name),
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

namespace detail {

template <class T>
struct is_tuple : std::false_type {};
template <class... T>
struct is_tuple<std::tuple<T...>> : std::true_type {};

// One call of an operation with a vjp: what its backward pass needs.
template <class Op, class... Args>
struct VjpCall : torch::CustomClassHolder {
    VjpCall(Executor executor, Op op, typename Op::Config cfg, std::tuple<Args...> args)
        : executor(std::move(executor)),
          op(std::move(op)),
          cfg(std::move(cfg)),
          args(std::move(args)) {}

    Executor executor;
    Op op;
    typename Op::Config cfg;
    std::tuple<Args...> args;  // its tensors are saved by autograd
};

template <class T>
void take_tensor(T& argument, torch::autograd::variable_list& saved) {
    if constexpr (std::same_as<T, at::Tensor>) {
        saved.push_back(std::exchange(argument, at::Tensor()));
    } else if constexpr (std::same_as<T, std::optional<at::Tensor>>) {
        saved.push_back(argument.value_or(at::Tensor()));
        argument.reset();
    } else if constexpr (std::same_as<T, std::nullopt_t>) {
        saved.emplace_back();
    }
}

template <class T>
void put_tensor(T& argument, const torch::autograd::variable_list& saved, std::size_t& next) {
    if constexpr (std::same_as<T, at::Tensor>) {
        argument = saved.at(next++);
    } else if constexpr (std::same_as<T, std::optional<at::Tensor>>) {
        const at::Tensor& tensor = saved.at(next++);
        argument = tensor.defined() ? std::optional(tensor) : std::nullopt;
    } else if constexpr (std::same_as<T, std::nullopt_t>) {
        ++next;
    }
}

// Throws Error(refused): vjp's results have no gradients.
TWINKLE_API void require_first_order(const std::string& operation);
// Throws Error(malformed).
TWINKLE_API void require_gradients(const std::string& operation, std::size_t given,
                                   std::size_t wanted);

template <class Op, class... Args>
struct VjpFunction : torch::autograd::Function<VjpFunction<Op, Args...>> {
    using Call = VjpCall<Op, Args...>;
    using Results = torch::autograd::variable_list;

    static Results forward(torch::autograd::AutogradContext* context,
                           const c10::intrusive_ptr<Call>& call, const Args&... args) {
        Results results;
        append_tensors(results, run_operation(call->op, platform_of(first_tensor(args...)),
                                              call->cfg, args...));
        Results saved;
        std::apply([&](auto&... own) { (take_tensor(own, saved), ...); }, call->args);
        context->save_for_backward(saved);
        context->saved_data["call"] = c10::IValue::make_capsule(call);
        return results;
    }

    static Results backward(torch::autograd::AutogradContext* context, const Results& grads) {
        const auto held = context->saved_data["call"].toCapsule();
        const Call& call = static_cast<const Call&>(*held);
        require_first_order(call.op.name());
        std::tuple<Args...> args = call.args;
        const Results saved = context->get_saved_variables();
        std::size_t next = 0;
        std::apply([&](auto&... own) { (put_tensor(own, saved, next), ...); }, args);
        const std::vector<at::Tensor> given(grads.begin(), grads.end());
        const std::vector<at::Tensor> found = std::apply(
            [&](const auto&... own) {
                const auto cfg =
                    call.executor.template chosen<true>(call.op, RunMode::backward, given, own...);
                return std::vector<at::Tensor>(call.op.vjp(given, own..., cfg));
            },
            args);
        require_gradients(call.op.name(), found.size(), next);
        Results all = {at::Tensor()};  // of the call itself
        next = 0;
        const auto add = [&]<class T>(const T&) {
            constexpr bool tensor = std::same_as<T, at::Tensor> ||
                                    std::same_as<T, std::optional<at::Tensor>> ||
                                    std::same_as<T, std::nullopt_t>;
            all.push_back(tensor ? found.at(next++) : at::Tensor());
        };
        std::apply([&](const auto&... own) { (add(own), ...); }, args);
        return all;
    }
};

template <class Result, std::size_t... I>
Result result_of(const std::vector<at::Tensor>& tensors, std::index_sequence<I...>) {
    return Result{tensors.at(I)...};
}

}  // namespace detail

template <bool backward, AnOperation Op, class... Args>
Question Executor::question(const Op& op, RunMode mode, const Args&... args) const {
    using Way = detail::Direction<Op, backward>;
    Question question{.invocation = invocation_of(op.name(), mode, args...)};
    question.key = key_of(question.invocation);
    question.build = op.build();
    question.rule = [&op, invocation = question.invocation] {
        return to_json(Way::heuristic(op, invocation));
    };
    question.knows = [&op, invocation = question.invocation](const std::string& cfg) {
        const auto all = detail::candidates<Op, backward>(op, invocation);
        return std::any_of(all.begin(), all.end(),
                           [&](const auto& known) { return to_json(known) == cfg; });
    };
    if (options_.captured) {
        return question;
    }
    question.measure = [this, &op, invocation = question.invocation, &args...](double budget_ms) {
        AutotuneOptions options = options_.autotune;
        options.budget_ms = budget_ms;
        return detail::measure(detail::trial_of<Op, backward>(op, invocation, args...), options);
    };
    if constexpr (!(detail::is_view<Args> || ...) && std::copy_constructible<Op>) {
        question.detached = [options = options_.autotune, op, invocation = question.invocation,
                             &args...] {
            return [options, op, invocation,
                    copies = std::make_shared<std::tuple<Args...>>(detail::copied(args)...)](
                       double budget_ms) mutable {
                options.budget_ms = budget_ms;
                return std::apply(
                    [&](const auto&... own) {
                        return detail::measure(
                            detail::trial_of<Op, backward>(op, invocation, own...), options);
                    },
                    *copies);
            };
        };
    }
    return question;
}

template <bool backward, AnOperation Op, class... Args>
auto Executor::chosen(const Op& op, RunMode mode, const Args&... args) const ->
    typename detail::Direction<Op, backward>::Cfg {
    using Cfg = typename detail::Direction<Op, backward>::Cfg;
    detail::CallKey key;
    key.add(static_cast<std::uint64_t>(mode));
    (detail::add_argument(key, args), ...);
    const std::uint64_t operation = detail::identity_of(op);
    const std::uint64_t version = selector_->version() + detail::recordings();
    const bool quick = key.fits() && detail::scopes_of_thread() == 0;
    if (quick) {
        if (const void* known = detail::quick_choice(id_, operation, version, key)) {
            return *static_cast<const Cfg*>(known);
        }
    }
    const Question asked = question<backward>(op, mode, args...);
    if constexpr (!backward) {
        detail::record_call(*this, op, asked.invocation, args...);
    }
    const Choice choice = selector_->choose(asked);
    Cfg cfg = from_json<Cfg>(choice.cfg);
    if (quick && !choice.provisional) {
        // As of before: what has changed meanwhile is asked for again.
        detail::remember_choice(id_, operation, version, key, std::make_shared<const Cfg>(cfg));
    }
    return cfg;
}

template <AnOperation Op, class... Args>
auto Executor::run_with(const Op& op, const typename Op::Config& cfg, const Args&... args) const {
    if constexpr (detail::HasVjp<Op, Args...> && !(detail::is_view<Args> || ...)) {
        if (detail::wants_gradients(args...)) {
            using Result = decltype(detail::run_operation(op, "cpu", cfg, args...));
            const auto call = c10::make_intrusive<detail::VjpCall<Op, Args...>>(
                *this, op, cfg, std::tuple<Args...>(args...));
            const std::vector<at::Tensor> results =
                detail::VjpFunction<Op, Args...>::apply(call, args...);
            if constexpr (detail::is_tuple<Result>::value) {
                return detail::result_of<Result>(
                    results, std::make_index_sequence<std::tuple_size_v<Result>>());
            } else {
                return Result(results.at(0));
            }
        } else {
            return detail::run_operation(op, detail::platform_of(detail::first_tensor(args...)),
                                         cfg, args...);
        }
    } else {
        return detail::run_operation(op, detail::platform_of(detail::first_tensor(args...)), cfg,
                                     args...);
    }
}

template <AnOperation Op, class... Args>
auto Executor::operator()(const Op& op, const Args&... args) const {
    using Last = std::tuple_element_t<sizeof...(Args), std::tuple<void*, Args...>>;
    if constexpr (std::same_as<Last, typename Op::Config>) {
        const auto all = std::tie(args...);
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return run_with(op, std::get<sizeof...(Args) - 1>(all), std::get<I>(all)...);
        }(std::make_index_sequence<sizeof...(Args) - 1>());
    } else {
        return run_with(op, chosen<false>(op, mode_of(args...), args...), args...);
    }
}

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

#include "twinkle/record_impl.h"
