#pragma once
// One choice for many calls that are alike: the parts of a batch, or the parts on several devices.

#include "twinkle/executor.h"

#include <torch/types.h>

namespace twinkle {

// For each argument the dimension that is divided; none: every part gets all of it.
using InAxes = std::vector<std::optional<std::int64_t>>;

namespace detail {

// Checks axes against tensors. Throws Error(malformed).
TWINKLE_API std::int64_t checked_size(const at::Tensor& tensor, std::int64_t axis,
                                      std::size_t argument);
TWINKLE_API void require_axes(std::size_t given, std::size_t arguments);
// Throws Error(malformed): parts of different sizes, or nothing that is divided.
TWINKLE_API void require_same_size(std::int64_t& size, std::int64_t other, std::size_t argument);
TWINKLE_API void require_divided(std::int64_t size);

template <class T>
std::int64_t size_along(const T& argument, std::int64_t axis, std::size_t place) {
    if constexpr (std::same_as<T, at::Tensor>) {
        return checked_size(argument, axis, place);
    } else {
        return checked_size(at::Tensor(), axis, place);
    }
}

// The common size along the divided dimensions.
template <class... Args>
std::int64_t divided_size(const InAxes& in_axes, const Args&... args) {
    require_axes(in_axes.size(), sizeof...(Args));
    std::int64_t size = -1;
    std::size_t place = 0;
    const auto look = [&](const auto& argument) {
        if (const auto axis = in_axes[place]) {
            require_same_size(size, size_along(argument, *axis, place), place);
        }
        ++place;
    };
    (look(args), ...);
    require_divided(size);
    return size;
}

template <class T, class Take>
T part_of(const T& argument, const std::optional<std::int64_t>& axis, const Take& take) {
    if constexpr (std::same_as<T, at::Tensor>) {
        return axis ? take(argument, *axis) : argument;
    } else {
        return argument;
    }
}

template <class Take, class... Args, std::size_t... I>
std::tuple<Args...> parts_of(const InAxes& in_axes, const Take& take, std::index_sequence<I...>,
                             const Args&... args) {
    return std::tuple<Args...>(part_of(args, in_axes[I], take)...);
}

// Results of all parts: tensors stacked, or concatenated, part by part; tuples of them likewise.
template <class Result, class Join>
Result joined(const std::vector<Result>& parts, const Join& join) {
    if constexpr (std::same_as<Result, at::Tensor>) {
        return join(parts);
    } else {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            const auto each = [&](auto index) {
                std::vector<at::Tensor> own;
                for (const Result& part : parts) {
                    own.push_back(std::get<decltype(index)::value>(part));
                }
                return join(own);
            };
            return Result{each(std::integral_constant<std::size_t, I>())...};
        }(std::make_index_sequence<std::tuple_size_v<Result>>());
    }
}

}  // namespace detail

// Runs the operation on every slice along `in_axes`, as if the batch were a loop, with one choice
// for all of them; results are stacked along a new first dimension. The operation returns a tensor
// or a tuple of tensors.
template <AnOperation Op, class... Args>
auto batch_with_config(const Executor& executor, const Op& op, const InAxes& in_axes,
                       const Args&... args) {
    const std::int64_t size = detail::divided_size(in_axes, args...);
    const auto slice = [&](std::int64_t index) {
        return detail::parts_of(
            in_axes,
            [&](const at::Tensor& whole, std::int64_t axis) { return whole.select(axis, index); },
            std::index_sequence_for<Args...>(), args...);
    };
    const auto cfg =
        std::apply([&](const auto&... own) { return executor.cfg(op, own...); }, slice(0));
    const auto run = [&](const auto&... own) { return executor.run_with(op, cfg, own...); };
    std::vector<decltype(std::apply(run, slice(0)))> results;
    for (std::int64_t index = 0; index < size; ++index) {
        results.push_back(std::apply(run, slice(index)));
    }
    return detail::joined(results,
                          [](const std::vector<at::Tensor>& parts) { return at::stack(parts); });
}

// Divides the arguments along `in_axes` into as many equal parts as there are devices, runs one
// part on each with one choice for all (that for the first device), and returns the results on the
// first device, concatenated along `out_axis`. Devices work side by side as far as their kernels
// are only launched. Throws Error(malformed) where the size is not divided evenly.
template <AnOperation Op, class... Args>
auto devices_with_config(const Executor& executor, const Op& op,
                         const std::vector<c10::Device>& devices, const InAxes& in_axes,
                         std::int64_t out_axis, const Args&... args);

namespace detail {
// Throws Error(malformed) where it is not divided evenly, or there is no device.
TWINKLE_API std::int64_t part_size(std::int64_t size, std::size_t parts);
TWINKLE_API Executor sharded(const Executor& executor, const std::vector<c10::Device>& devices,
                             const InAxes& in_axes);

template <class T>
T on_device(const T& argument, const c10::Device& device) {
    if constexpr (std::same_as<T, at::Tensor>) {
        return argument.defined() ? argument.to(device, /*non_blocking=*/true) : argument;
    } else if constexpr (std::same_as<T, std::optional<at::Tensor>>) {
        return argument.has_value() ? T(on_device(*argument, device)) : argument;
    } else {
        return argument;
    }
}
}  // namespace detail

template <AnOperation Op, class... Args>
auto devices_with_config(const Executor& executor, const Op& op,
                         const std::vector<c10::Device>& devices, const InAxes& in_axes,
                         std::int64_t out_axis, const Args&... args) {
    const std::int64_t size = detail::divided_size(in_axes, args...);
    const std::int64_t part = detail::part_size(size, devices.size());
    const Executor here = detail::sharded(executor, devices, in_axes);
    const auto slice = [&](std::size_t index) {
        const auto narrowed = [&](const at::Tensor& whole, std::int64_t axis) {
            return whole.narrow(axis, static_cast<std::int64_t>(index) * part, part);
        };
        return std::apply(
            [&](const auto&... own) {
                return std::tuple<Args...>(detail::on_device(own, devices[index])...);
            },
            detail::parts_of(in_axes, narrowed, std::index_sequence_for<Args...>(), args...));
    };
    const auto first = slice(0);
    const auto cfg = std::apply([&](const auto&... own) { return here.cfg(op, own...); }, first);
    const auto run = [&](const auto&... own) { return here.run_with(op, cfg, own...); };
    std::vector<decltype(std::apply(run, first))> results = {std::apply(run, first)};
    for (std::size_t index = 1; index < devices.size(); ++index) {
        results.push_back(std::apply(run, slice(index)));
    }
    return detail::joined(results, [&](std::vector<at::Tensor> parts) {
        for (at::Tensor& one : parts) {
            one = one.to(devices.front());
        }
        return at::cat(parts, out_axis);
    });
}

}  // namespace twinkle
