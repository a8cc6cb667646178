#pragma once
// How a call of an executor is noted (record.h). Included by executor.h.

#include "twinkle/executor.h"

namespace twinkle::detail {

template <class T>
auto without_data(const T& argument) {
    if constexpr (std::same_as<T, at::Tensor>) {
        return shape_of(argument);
    } else if constexpr (std::same_as<T, std::optional<at::Tensor>>) {
        return argument.has_value() ? std::optional(shape_of(*argument)) : std::nullopt;
    } else if constexpr (Tensors<T>) {
        std::vector<TensorShape> shapes;
        for (const at::Tensor& tensor : argument) {
            shapes.push_back(shape_of(tensor));
        }
        return shapes;
    } else if constexpr (Tuple<T>) {
        return std::apply(
            [](const auto&... parts) { return std::make_tuple(without_data(parts)...); }, argument);
    } else {
        return argument;
    }
}

template <class T, class Noted>
T with_random_data(const Noted& noted) {
    if constexpr (std::same_as<T, at::Tensor>) {
        return random_like(noted);
    } else if constexpr (std::same_as<T, std::optional<at::Tensor>>) {
        return noted.has_value() ? T(random_like(*noted)) : std::nullopt;
    } else if constexpr (Tensors<T>) {
        T tensors;
        for (const TensorShape& shape : noted) {
            tensors.push_back(random_like(shape));
        }
        return tensors;
    } else if constexpr (Tuple<T>) {
        return [&]<std::size_t... at>(std::index_sequence<at...>) {
            return T{with_random_data<std::tuple_element_t<at, T>>(std::get<at>(noted))...};
        }(std::make_index_sequence<std::tuple_size_v<T>>());
    } else {
        return noted;
    }
}

template <class Op, class... Args>
void record_call(const Executor&, const Op& op, const Invocation& invocation, const Args&... args) {
    if (!is_recording()) {
        return;
    }
    if constexpr ((is_view<Args> || ...) || !std::copy_constructible<Op>) {
        record_invocation(invocation);
    } else {
        record_replay(invocation, [op, noted = std::make_tuple(without_data(args)...)](
                                      const Executor& executor, const AutotuneOptions& options) {
            const auto made = std::apply(
                [](const auto&... own) {
                    return std::tuple<Args...>(with_random_data<Args>(own)...);
                },
                noted);
            return autotune(executor, op, made, options).measurement;
        });
    }
}

}  // namespace twinkle::detail
