#pragma once
// Calls as invocations, and as the key that finds a choice again without making one.

#include "twinkle/api.h"
#include "twinkle/invocation.h"

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace twinkle {

// Describes one argument. Of a tensor, all sizes but the last are in buckets (size_bucket); the
// only size of a vector is exact, as is the last of all others.
TWINKLE_API AbstractInput abstract_input(const at::Tensor& tensor);

namespace detail {

// What of a call decides, in few words, equal for calls with equal invocations.
class CallKey {
public:
    static constexpr std::size_t most = 48;  // a convolution with all that follows it

    void add(std::uint64_t word) {
        if (count_ < most) {
            words_[count_] = word;
        }
        ++count_;
        hash_ = (hash_ ^ word) * 0x9E3779B97F4A7C15ULL;
        hash_ ^= hash_ >> 29;
    }
    bool fits() const { return count_ <= most; }
    std::uint64_t hash() const { return hash_; }
    bool operator==(const CallKey& other) const {
        return count_ == other.count_ && hash_ == other.hash_ &&
               std::memcmp(words_.data(), other.words_.data(), count_ * sizeof(words_[0])) == 0;
    }

private:
    std::array<std::uint64_t, most> words_;  // only the first count_ are set
    std::size_t count_ = 0;
    std::uint64_t hash_ = 0;
};

TWINKLE_API void add_tensor(CallKey& key, const at::Tensor& tensor);
TWINKLE_API void add_text(CallKey& key, std::string_view text);
TWINKLE_API AbstractInput abstract_list(const std::vector<std::int64_t>& list);

template <class T>
concept Texts = std::convertible_to<const T&, std::string_view>;
template <class T>
concept Tensors = !std::same_as<T, at::Tensor> && requires(const T& list) {
    { *std::begin(list) } -> std::convertible_to<const at::Tensor&>;
};
template <class T>
concept Integers = !Texts<T> && requires(const T& list) {
    requires std::integral<std::remove_cvref_t<decltype(*std::begin(list))>>;
};
// Excludes arrays, which are lists.
template <class T>
concept Tuple =
    requires { std::tuple_size<T>::value; } && !requires(const T& list) { std::begin(list); };
template <class T>
concept Optional = requires(const T& value) {
    value.has_value();
    *value;
};

// Calls `each` with every tensor among the arguments that is defined, also in lists and tuples.
template <class Each, class T>
void for_each_tensor(Each&& each, const T& argument) {
    if constexpr (std::same_as<T, at::Tensor>) {
        if (argument.defined()) {
            each(argument);
        }
    } else if constexpr (Optional<T>) {
        if (argument.has_value()) {
            for_each_tensor(each, *argument);
        }
    } else if constexpr (Tensors<T>) {
        for (const at::Tensor& tensor : argument) {
            for_each_tensor(each, tensor);
        }
    } else if constexpr (Tuple<T>) {
        std::apply([&](const auto&... parts) { (for_each_tensor(each, parts), ...); }, argument);
    }
}

template <class T>
void add_argument(CallKey& key, const T& argument) {
    if constexpr (std::same_as<T, at::Tensor>) {
        add_tensor(key, argument);
    } else if constexpr (std::same_as<T, std::nullopt_t>) {
        key.add(1);
    } else if constexpr (Optional<T>) {
        if (argument.has_value()) {
            add_argument(key, *argument);
        } else {
            key.add(1);
        }
    } else if constexpr (std::floating_point<T>) {
        key.add(2);
    } else if constexpr (std::same_as<T, bool>) {
        key.add(argument ? 4 : 3);
    } else if constexpr (std::integral<T>) {
        key.add(5);
        key.add(static_cast<std::uint64_t>(argument));
    } else if constexpr (Texts<T>) {
        add_text(key, argument);
    } else if constexpr (Tensors<T>) {
        key.add(6);
        for (const at::Tensor& tensor : argument) {
            add_tensor(key, tensor);
        }
        key.add(7);
    } else if constexpr (Integers<T>) {
        key.add(8);
        for (const auto integer : argument) {
            key.add(static_cast<std::uint64_t>(integer));
        }
        key.add(7);
    } else if constexpr (Tuple<T>) {
        key.add(10);
        std::apply([&](const auto&... parts) { (add_argument(key, parts), ...); }, argument);
        key.add(7);
    } else {
        static_assert(sizeof(T) == 0,
                      "an operation takes tensors, numbers, truth values, texts, "
                      "lists of tensors or integers, and optional ones and tuples of these");
    }
}

template <class T>
void add_input(std::vector<AbstractInput>& inputs, const T& argument) {
    if constexpr (std::same_as<T, at::Tensor>) {
        inputs.push_back(abstract_input(argument));
    } else if constexpr (std::same_as<T, std::nullopt_t>) {
        inputs.push_back({.dtype = "none"});
    } else if constexpr (Optional<T>) {
        if (argument.has_value()) {
            add_input(inputs, *argument);
        } else {
            inputs.push_back({.dtype = "none"});
        }
    } else if constexpr (std::floating_point<T>) {
        inputs.push_back({.dtype = "float"});
    } else if constexpr (std::same_as<T, bool>) {
        inputs.push_back({.dtype = "bool", .value = argument ? "true" : "false"});
    } else if constexpr (std::integral<T>) {
        inputs.push_back({.dtype = "int", .value = std::to_string(argument)});
    } else if constexpr (Texts<T>) {
        inputs.push_back({.dtype = "str", .value = std::string(std::string_view(argument))});
    } else if constexpr (Tensors<T>) {
        const std::size_t place = inputs.size();
        inputs.push_back({.dtype = "list"});
        for (const at::Tensor& tensor : argument) {
            inputs.push_back(abstract_input(tensor));
        }
        inputs[place].value = std::to_string(inputs.size() - place - 1);
    } else if constexpr (Tuple<T>) {
        inputs.push_back({.dtype = "tuple", .value = std::to_string(std::tuple_size_v<T>)});
        std::apply([&](const auto&... parts) { (add_input(inputs, parts), ...); }, argument);
    } else {
        inputs.push_back(abstract_list({std::begin(argument), std::end(argument)}));
    }
}

}  // namespace detail

// The invocation of a call, as far as its arguments say: inputs and nothing else.
template <class... Args>
std::vector<AbstractInput> abstract_inputs(const Args&... args) {
    std::vector<AbstractInput> inputs;
    (detail::add_input(inputs, args), ...);
    return inputs;
}

// Keys of caches, from invocations.
using KeyBuilder = std::function<std::string(const Invocation&)>;
TWINKLE_API std::string default_key_builder(const Invocation& invocation);
// The same beside how the work is divided, as sharding_fingerprint() says it.
TWINKLE_API std::string default_key_builder_with_sharding(const Invocation& invocation,
                                                          const std::string& sharding);
// How tensors that are divided into `parts` along these dimensions (none: whole on each) lie on
// devices of these kinds: "2 parts [0,-] on cuda".
TWINKLE_API std::string sharding_fingerprint(
    std::size_t parts, const std::vector<std::optional<std::int64_t>>& in_axes,
    const std::vector<std::string>& platforms);

}  // namespace twinkle
