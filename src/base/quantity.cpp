#include "base/quantity.h"

#include <fmt/format.h>

#include <array>

namespace twinkle::base {

std::string human_bytes(std::uint64_t bytes) {
    constexpr std::array units{"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    if (bytes < 1000) {
        return fmt::format("{} B", bytes);
    }
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    // 999.95 would be rounded to 1000.
    while (value >= 999.5 && unit + 1 < units.size()) {
        value /= 1000;
        ++unit;
    }
    const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f} {}", value, digits, units[unit]);
}

std::string human_duration(std::chrono::seconds duration) {
    const auto seconds = duration.count() < 0 ? 0 : duration.count();
    const auto hours = seconds / 3600;
    return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, seconds / 60 % 60, seconds % 60)
                     : fmt::format("{}:{:02}", seconds / 60, seconds % 60);
}

std::string counted(std::uint64_t count, const std::string& thing) {
    return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

}  // namespace twinkle::base
