#include "runtime/trial/patience.h"

#include <algorithm>
#include <cstdlib>

namespace twinkle::runtime {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::optional<seconds> silence_of_environment() {
    const char* text = std::getenv("TWINKLE_SANDBOX_SECONDS");
    const long value = text != nullptr ? std::strtol(text, nullptr, 10) : 0;
    return value > 0 && value < 86400 ? std::optional(seconds(value)) : std::nullopt;
}

void shorten_silence(child::Limits& limits, milliseconds took) {
    constexpr int times = 20;  // a busy machine, a first call
    constexpr milliseconds least = seconds(20);
    if (!silence_of_environment()) {
        limits.silence = std::min(limits.silence, std::max(least, times * took));
    }
}

}  // namespace twinkle::runtime
