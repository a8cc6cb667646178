#pragma once
// A call of an operation with a vjp as a node of autograd. Included by executor_impl.h.

#include "twinkle/executor.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <concepts>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace twinkle::detail {

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

// A result again, of the tensors that it consists of. A list has all that are left.
template <class Result>
Result result_of(const std::vector<at::Tensor>& tensors, std::size_t& next) {
    if constexpr (std::same_as<Result, at::Tensor>) {
        return tensors.at(next++);
    } else if constexpr (Tuple<Result>) {
        constexpr std::size_t parts = std::tuple_size_v<Result>;
        return [&]<std::size_t... at>(std::index_sequence<at...>) {
            static_assert(((at + 1 == parts || !Tensors<std::tuple_element_t<at, Result>>) && ...),
                          "of a result with gradients only the last part may be a list");
            return Result{result_of<std::tuple_element_t<at, Result>>(tensors, next)...};
        }(std::make_index_sequence<parts>());
    } else {
        const auto first = tensors.begin() + static_cast<std::ptrdiff_t>(next);
        next = tensors.size();
        return Result(first, tensors.end());
    }
}

}  // namespace twinkle::detail
