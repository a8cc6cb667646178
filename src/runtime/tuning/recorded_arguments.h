#pragma once
// The arguments of a call that was recorded: of its shapes and dtypes, with random data.

#include "twinkle/invocation.h"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>

namespace twinkle::runtime {

class RecordedArguments {
public:
    explicit RecordedArguments(const Invocation& invocation) : invocation_(invocation) {}

    // Of these types, in their order. Throws Error(malformed) where the invocation has others, or
    // tensors that cannot be made again.
    template <class... A>
    std::tuple<A...> all() {
        std::tuple<A...> made{next<A>()...};  // braces: in this order
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
        } else {
            static_assert(std::is_same_v<T, double>);
            return number();
        }
    }

    const AbstractInput& take();
    bool none();  // takes it, if it is
    at::Tensor tensor();
    bool truth();
    double number();  // floating-point numbers choose no kernel, and are not recorded
    void finish() const;

    const Invocation& invocation_;
    std::size_t next_ = 0;
};

}  // namespace twinkle::runtime
