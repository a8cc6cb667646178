#include "sigstore/time.h"

#include <fmt/format.h>

namespace twinkle::sigstore {
namespace {

using namespace std::chrono;

constexpr sys_days first_day = year{1} / January / 1;
constexpr sys_days last_day = year{9999} / December / 31;

// Takes exactly `count` digits off the front.
std::optional<int> digits(std::string_view& text, std::size_t count) {
    if (text.size() < count) {
        return std::nullopt;
    }
    int value = 0;
    for (const char c : text.substr(0, count)) {
        if (c < '0' || c > '9') {
            return std::nullopt;
        }
        value = value * 10 + (c - '0');
    }
    text.remove_prefix(count);
    return value;
}

bool skip(std::string_view& text, char expected) {
    if (text.empty() || text.front() != expected) {
        return false;
    }
    text.remove_prefix(1);
    return true;
}

std::optional<sys_days> read_date(std::string_view& text) {
    const auto y = digits(text, 4);
    const auto m = y && skip(text, '-') ? digits(text, 2) : std::nullopt;
    const auto d = m && skip(text, '-') ? digits(text, 2) : std::nullopt;
    if (!d) {
        return std::nullopt;
    }
    const year_month_day date{year{*y}, month{static_cast<unsigned>(*m)},
                              day{static_cast<unsigned>(*d)}};
    return date.ok() && *y >= 1 ? std::optional(sys_days{date}) : std::nullopt;
}

// "hh:mm", for the time and for an offset.
std::optional<minutes> read_minutes(std::string_view& text) {
    const auto h = digits(text, 2);
    const auto m = h && skip(text, ':') ? digits(text, 2) : std::nullopt;
    return m && *h < 24 && *m < 60 ? std::optional(hours{*h} + minutes{*m}) : std::nullopt;
}

std::optional<microseconds> read_fraction(std::string_view& text) {
    if (!skip(text, '.')) {
        return microseconds{0};
    }
    std::int64_t value = 0;
    std::int64_t scale = 1'000'000;
    std::size_t count = 0;
    for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; ++count) {
        if (scale > 1) {
            scale /= 10;
            value += (text.front() - '0') * scale;
        }
        text.remove_prefix(1);
    }
    return count > 0 && count <= 9 ? std::optional(microseconds{value}) : std::nullopt;
}

std::optional<minutes> read_offset(std::string_view& text) {
    if (skip(text, 'Z')) {
        return minutes{0};
    }
    const bool west = !text.empty() && text.front() == '-';
    if (!skip(text, west ? '-' : '+')) {
        return std::nullopt;
    }
    const auto offset = read_minutes(text);
    return offset ? std::optional(west ? -*offset : *offset) : std::nullopt;
}

}  // namespace

std::optional<Time> parse_time(std::string_view text) {
    const auto date = read_date(text);
    const auto minute = date && skip(text, 'T') ? read_minutes(text) : std::nullopt;
    const auto second = minute && skip(text, ':') ? digits(text, 2) : std::nullopt;
    const auto fraction = second && *second < 60 ? read_fraction(text) : std::nullopt;
    const auto offset = fraction ? read_offset(text) : std::nullopt;
    if (!offset || !text.empty()) {
        return std::nullopt;
    }
    return Time{*date} + *minute + seconds{*second} + *fraction - *offset;
}

std::string format_time(Time time) {
    const auto day_start = floor<days>(time);
    const year_month_day date{day_start};
    const hh_mm_ss clock{floor<seconds>(time - day_start)};
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                       clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

std::optional<Time> time_from_seconds(std::int64_t since_1970) {
    constexpr auto low = time_point_cast<seconds>(first_day).time_since_epoch().count();
    constexpr auto high = time_point_cast<seconds>(last_day + days{1}).time_since_epoch().count();
    if (since_1970 < low || since_1970 >= high) {
        return std::nullopt;
    }
    return Time{seconds{since_1970}};
}

std::int64_t to_seconds(Time time) {
    return floor<seconds>(time).time_since_epoch().count();
}

}  // namespace twinkle::sigstore
