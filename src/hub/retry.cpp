#include "hub/retry.h"

#include <algorithm>
#include <random>

namespace twinkle::hub {

using std::chrono::milliseconds;

std::chrono::steady_clock::time_point Clock::now() const {
    return std::chrono::steady_clock::now();
}

std::chrono::system_clock::time_point Clock::date() const {
    return std::chrono::system_clock::now();
}

bool Clock::skip(milliseconds) {
    return false;
}

double Clock::random() {
    static thread_local std::minstd_rand engine(std::random_device{}());
    return std::uniform_real_distribution<double>(0.0, 1.0)(engine);
}

bool is_transient(int status) {
    return status == 408 || status == 429 ||
           (status >= 500 && status < 600 && status != 501 && status != 505);
}

std::optional<milliseconds> retry_delay(const RetryPolicy& policy, int failures, int status,
                                        const Headers& headers, Clock& clock) {
    std::optional<std::chrono::seconds> asked;
    if (const auto value = headers.get("retry-after")) {
        asked = retry_after(*value, clock.date());
    }
    // Every answer has the header; it is the reason only for a 429.
    if (const auto value = headers.get("ratelimit"); !asked && value && status == 429) {
        asked = exhausted_for(*value);
    }
    if (asked && *asked > policy.longest_request) {
        return std::nullopt;
    }
    auto delay = policy.first_delay;
    for (int i = 1; i < failures && delay < policy.longest_delay; ++i) {
        delay *= 2;
    }
    delay = std::min(delay, policy.longest_delay);
    // Jitter: clients that were turned away at the same moment must not return at the same moment.
    const double jitter = clock.random();
    if (asked) {
        return *asked + milliseconds(static_cast<int>(jitter * 1000));
    }
    return milliseconds(static_cast<int>((0.5 + jitter / 2) * static_cast<double>(delay.count())));
}

}  // namespace twinkle::hub
