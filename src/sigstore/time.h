#pragma once
// Points in time as certificates, logs and trusted roots state them.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace twinkle::sigstore {

using Time = std::chrono::sys_time<std::chrono::microseconds>;

// Includes both ends; without an end it is open.
struct Period {
    Time start;
    std::optional<Time> end;

    bool contains(Time time) const { return start <= time && (!end || time <= *end); }
};

// "2025-07-04T00:00:00Z", with an optional fraction or offset. None if it is no time of the years 1
// to 9999; digits below a microsecond are dropped.
std::optional<Time> parse_time(std::string_view text);

std::string format_time(Time time);  // "2025-07-04T00:00:00Z": to the second

// None outside of the years 1 to 9999.
std::optional<Time> time_from_seconds(std::int64_t since_1970);
std::int64_t to_seconds(Time time);  // rounded down

}  // namespace twinkle::sigstore
