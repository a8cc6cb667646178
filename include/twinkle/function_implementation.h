#pragma once
// A program's replacement for a function of a model: a C++ function, or text that names something
// else.

#include "twinkle/implementation.h"

#include <ATen/core/stack.h>

#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace twinkle {

namespace detail {

template <class T>
struct Signature {};
template <class T>
    requires requires { &T::operator(); }
struct Signature<T> : Signature<decltype(&T::operator())> {};
template <class R, class... A>
struct Signature<R (*)(A...)> {
    using Result = R;
    using Arguments = std::tuple<std::decay_t<A>...>;
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> : Signature<R (*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...)> : Signature<R (*)(A...)> {};

template <class F>
concept Typed = requires { typename Signature<std::decay_t<F>>::Result; };

// The type's name in TorchScript, for messages.
template <class T>
struct TypeName {
    static std::string text() {
        return std::is_same_v<T, bool>          ? "bool"
               : std::is_integral_v<T>          ? "int"
               : std::is_floating_point_v<T>    ? "float"
               : std::is_same_v<T, at::Tensor>  ? "Tensor"
               : std::is_same_v<T, std::string> ? "str"
                                                : "value";
    }
};
template <class T>
struct TypeName<std::optional<T>> {
    static std::string text() { return TypeName<T>::text() + "?"; }
};
template <class T>
struct TypeName<std::vector<T>> {
    static std::string text() { return TypeName<T>::text() + "[]"; }
};
template <class T>
struct TypeName<c10::List<T>> : TypeName<std::vector<T>> {};
template <class... T>
struct TypeName<std::tuple<T...>> {
    static std::vector<std::string> list() { return {TypeName<T>::text()...}; }
    static std::string text() {
        std::string all;
        for (const std::string& one : list()) {
            all += (all.empty() ? "" : ", ") + one;
        }
        return "(" + all + ")";
    }
};

// Throws Error(malformed).
TWINKLE_API void require_arguments(std::size_t given, std::size_t wanted);

template <class F, std::size_t... I>
c10::IValue call(F& function, std::vector<c10::IValue>& arguments, std::index_sequence<I...>) {
    using S = Signature<F>;
    return c10::IValue(
        function(arguments[I].to<std::tuple_element_t<I, typename S::Arguments>>()...));
}

}  // namespace detail

// One of: nothing; "fast.py:add", a Python file and a function in it; "op:namespace::name"; an
// operator or function of a kernel; a C++ function of tensors, numbers, strings, flags, lists and
// tuples of them, and optional ones. A C++ function is called from whatever thread runs the model,
// and in training too: if LibTorch cannot record its gradients, pass an object with has_backward =
// false.
class TWINKLE_API FunctionImplementation {
public:
    FunctionImplementation() = default;
    FunctionImplementation(const char* text)  // NOLINT(google-explicit-constructor)
        : text_(text) {}
    FunctionImplementation(std::string text)  // NOLINT(google-explicit-constructor)
        : text_(std::move(text)) {}
    FunctionImplementation(Implementation callable)  // NOLINT(google-explicit-constructor)
        : callable_(std::move(callable)) {}
    template <detail::Typed F>
    FunctionImplementation(F function)  // NOLINT(google-explicit-constructor)
        : callable_(Implementation(
              "a C++ function",
              [function = std::move(function)](std::vector<c10::IValue> arguments,
                                               const Implementation::Keywords&) mutable {
                  constexpr auto count = std::tuple_size_v<Arguments<F>>;
                  detail::require_arguments(arguments.size(), count);
                  return detail::call(function, arguments, std::make_index_sequence<count>());
              },
              detail::TypeName<Arguments<F>>::list())) {}

    const std::string& text() const { return text_; }
    const std::optional<Implementation>& callable() const { return callable_; }
    bool empty() const { return text_.empty() && !callable_; }

private:
    template <class F>
    using Arguments = typename detail::Signature<F>::Arguments;

    std::string text_;
    std::optional<Implementation> callable_;
};

// Provides the implementation on demand.
struct TWINKLE_API FunctionRepository {
    virtual ~FunctionRepository() = default;
    virtual Implementation load() = 0;

    bool has_backward = true;
    bool can_torch_compile = false;
};

}  // namespace twinkle
