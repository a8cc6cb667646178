#pragma once
// What overlay_cache and policy_override have put around the calls of this thread.

#include <vector>

#include "twinkle/selector.h"

namespace twinkle::tuning {

struct Scopes {
    std::vector<ConfigCache> overlays;  // the innermost last
    std::vector<TuningPolicy> policies;
};

Scopes& scopes();  // of this thread

}  // namespace twinkle::tuning
