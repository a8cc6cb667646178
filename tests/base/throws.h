#pragma once
// Catches the Error that an expression throws, to check its code and words.

#include <optional>

#include "twinkle/error.h"

namespace twinkle::test {

template <typename Function>
std::optional<Error> error_of(Function&& function) {
    try {
        function();
    } catch (const Error& error) {
        return error;
    }
    return std::nullopt;
}

}  // namespace twinkle::test
