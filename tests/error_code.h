#pragma once
// The code of the Error that a call must throw.

#include "twinkle/error.h"

#include <stdexcept>

namespace twinkle::tests {

template <class Call>
ErrorCode code_of(const Call& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.code();
    }
    throw std::runtime_error("no error was thrown");
}

}  // namespace twinkle::tests
