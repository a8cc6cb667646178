#pragma once
// Points in time as certificates, logs and trusted roots give them.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace twinkle::sigstore {

using Time = std::chrono::sys_time<std::chrono::microseconds>;

// Closed on both sides; without an end it goes on.
struct Period {
    Time start;
    std::optional<Time> end;

    bool contains(Time time) const { return start <= time && (!end || time <= *end); }
};

// "2025-07-04T00:00:00Z", with a fraction or an offset where there is one. None if it is no time
// of the years 1 to 9999; what is finer than a microsecond is cut off.
std::optional<Time> parse_time(std::string_view text);

std::string format_time(Time time);  // "2025-07-04T00:00:00Z": to the second

// None outside of the years 1 to 9999.
std::optional<Time> time_from_seconds(std::int64_t since_1970);
std::int64_t to_seconds(Time time);  // rounded down

}  // namespace twinkle::sigstore
