#pragma once
// Waiting for a retry takes no time, and is recorded.

#include <vector>

#include "hub/retry.h"

namespace twinkle::test {

class FakeClock : public hub::Clock {
public:
    double next_random = 0.5;
    std::chrono::system_clock::time_point today{std::chrono::seconds(1'700'000'000)};
    std::vector<std::chrono::milliseconds> waits;

    std::chrono::steady_clock::time_point now() const override {
        return hub::Clock::now() + skipped_;
    }
    std::chrono::system_clock::time_point date() const override { return today + skipped_; }
    bool skip(std::chrono::milliseconds duration) override {
        waits.push_back(duration);
        skipped_ += duration;
        return true;
    }
    double random() override { return next_random; }

private:
    std::chrono::milliseconds skipped_{0};
};

}  // namespace twinkle::test
