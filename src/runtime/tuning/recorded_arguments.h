#pragma once
// The arguments of a call that was recorded: of its shapes and dtypes, with random data.

#include "twinkle/call_key.h"
#include "twinkle/invocation.h"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

namespace twinkle::runtime {

class RecordedArguments {
public:
    explicit RecordedArguments(const Invocation& invocation) : invocation_(invocation) {}

    // All arguments, of the types of this tuple, in their order. Throws Error(malformed) where the
    // invocation has others, or tensors that cannot be made again.
    template <class Tuple>
    Tuple all() {
        Tuple made = each(std::type_identity<Tuple>());
        finish();
        return made;
    }

private:
    template <class T>
    T next() {
        if constexpr (std::is_same_v<T, at::Tensor>) {
            return tensor();
        } else if constexpr (std::is_same_v<T, std::optional<at::Tensor>>) {
            return none() ? T() : T(tensor());
        } else if constexpr (std::is_same_v<T, bool>) {
            return truth();
        } else if constexpr (std::is_same_v<T, double>) {
            return number();
        } else {
            static_assert(detail::Integers<T>);
            T integers{};
            read_integers(integers);
            return integers;
        }
    }
    template <class... A>
    std::tuple<A...> each(std::type_identity<std::tuple<A...>>) {
        return {next<A>()...};  // braces: in this order
    }

    const AbstractInput& take();
    bool none();  // takes it, if it is
    at::Tensor tensor();
    bool truth();
    double number();  // floating-point numbers choose no kernel, and are not recorded
    void read_integers(std::span<std::int64_t> integers);
    void finish() const;

    const Invocation& invocation_;
    std::size_t next_ = 0;
};

// The first so many along a dimension, in memory as the tensor is. Throws Error(malformed) where it
// has no such, or is smaller.
at::Tensor narrowed(const at::Tensor& tensor, std::int64_t dim, std::int64_t size);

// Throws Error(malformed) where a result of these sizes is larger than an argument may be.
void require_possible(const std::vector<std::int64_t>& sizes);

}  // namespace twinkle::runtime
