#pragma once
// Why a site keeps its original forward.

#include "twinkle/kernelize.h"

#include <optional>
#include <string>

namespace twinkle::runtime {

struct KeepReason {
    std::optional<Fallback> fallback;  // none: a condition of the binding, always allowed
    std::string because;
};

}  // namespace twinkle::runtime
