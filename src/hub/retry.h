#pragma once
// When a request is retried, and after what delay.

#include <chrono>
#include <optional>

#include "hub/headers.h"

namespace twinkle::hub {

// The clock of the retries; tests need not wait.
class Clock {
public:
    virtual ~Clock() = default;
    virtual std::chrono::steady_clock::time_point now() const;
    virtual std::chrono::system_clock::time_point date() const;
    // Nothing happens before `duration` is over. True: the clock has advanced by itself and nobody
    // needs to wait.
    virtual bool skip(std::chrono::milliseconds duration);
    // From [0, 1).
    virtual double random();
};

struct RetryPolicy {
    int attempts = 5;
    std::chrono::milliseconds first_delay{500};
    std::chrono::milliseconds longest_delay{8'000};
    std::chrono::milliseconds longest_request{120'000};  // that a server may ask for
    std::chrono::milliseconds total{300'000};            // since the first failure in a row
};

// 408, 429 and 5xx, except those that are permanent (501, 505).
bool is_transient(int status);

// The delay after this many consecutive failures (from 1). None: the server demands more patience
// than there is.
std::optional<std::chrono::milliseconds> retry_delay(const RetryPolicy& policy, int failures,
                                                     int status, const Headers& headers,
                                                     Clock& clock);

}  // namespace twinkle::hub
