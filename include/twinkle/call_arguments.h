#pragma once
// What the arguments of a call have in common: their first tensor, whether they want gradients,
// copies that outlive the call. Internal: included by executor.h.

#include "twinkle/api.h"
#include "twinkle/call_key.h"

#include <ATen/core/grad_mode.h>

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace twinkle::detail {

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
template <class... Parts>
inline constexpr bool is_view<std::tuple<Parts...>> = (is_view<Parts> || ...);

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
    } else if constexpr (Tuple<T>) {
        return std::apply([](const auto&... parts) { return T{copied(parts)...}; }, argument);
    } else {
        return argument;
    }
}

}  // namespace twinkle::detail
