#pragma once
// How an executor asks its selector, and runs what it says. Included by executor.h.

#include "twinkle/executor.h"
#include "twinkle/executor_vjp.h"

#include <algorithm>
#include <concepts>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace twinkle {

namespace detail {

// Choices of this thread, found without a lock.
TWINKLE_API const void* quick_choice(std::uint64_t executor, std::uint64_t operation,
                                     std::uint64_t version, const CallKey& key);
TWINKLE_API void remember_choice(std::uint64_t executor, std::uint64_t operation,
                                 std::uint64_t version, const CallKey& key,
                                 std::shared_ptr<const void> cfg);

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
        options.in_children = false;
        options.budget_ms = budget_ms;
        return detail::measure(detail::trial_of<Op, backward>(op, invocation, args...), options);
    };
    if constexpr (!(detail::is_view<Args> || ...) && std::copy_constructible<Op>) {
        question.detached = [options = options_.autotune, op, invocation = question.invocation,
                             &args...] {
            return [options, op, invocation,
                    copies = std::make_shared<std::tuple<Args...>>(detail::copied(args)...)](
                       double budget_ms) mutable {
                options.in_children = false;
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
    if constexpr (std::is_empty_v<Cfg>) {
        return {};  // there is nothing to choose
    }
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
        static_assert(
            !(detail::Tuple<Args> || ...),
            "autograd sees no tensors in tuples: an operation with a vjp takes them apart");
        if (detail::wants_gradients(args...)) {
            using Result = decltype(detail::run_operation(op, "cpu", cfg, args...));
            const auto call = c10::make_intrusive<detail::VjpCall<Op, Args...>>(
                *this, op, cfg, std::tuple<Args...>(args...));
            const std::vector<at::Tensor> results =
                detail::VjpFunction<Op, Args...>::apply(call, args...);
            std::size_t next = 0;
            return detail::result_of<Result>(results, next);
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

}  // namespace twinkle
