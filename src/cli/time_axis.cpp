#include "cli/time_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace twinkle::cli {
namespace {

// Shorter times (zero included) and longer ones are drawn at these limits.
constexpr double shortest_time = 1e-3;
constexpr double longest_time = 1e12;  // 12 days
constexpr std::array<double, 3> round_numbers = {1, 2, 5};

// Every 1, 2 and 5 times a power of ten within the limits.
std::vector<double> round_times(double least, double most) {
    std::vector<double> times;
    const auto first = static_cast<int>(std::floor(std::log10(least)));
    const auto last = static_cast<int>(std::ceil(std::log10(most)));
    for (int power = first; power <= last; ++power) {
        for (const double number : round_numbers) {
            times.push_back(number * std::pow(10.0, power));
        }
    }
    return times;
}

}  // namespace

std::string drawn_time(double us) {
    return us < 999.5     ? fmt::format("{:.3g} µs", us)
           : us < 999.5e3 ? fmt::format("{:.3g} ms", us / 1e3)
                          : fmt::format("{:.3g} s", us / 1e6);
}

double TimeAxis::place(double us) const {
    return logarithmic_ ? std::log10(std::max(us, shortest_time)) : us;
}

double TimeAxis::at(double us) const {
    return std::clamp(left_ + (place(us) - from_) / (to_ - from_) * (right_ - left_), left_,
                      right_);
}

void TimeAxis::add_tick(double us) {
    ticks_.push_back({us, us == 0 ? "0" : drawn_time(us)});
}

TimeAxis TimeAxis::linear(double most, double left, double right) {
    most = std::clamp(most, shortest_time, longest_time);
    TimeAxis axis(false, left, right);
    const auto steps = round_times(most / 10, most);
    const double step =
        *std::find_if(steps.begin(), steps.end(), [&](double one) { return most / one <= 5; });
    const auto count = static_cast<int>(std::ceil(most / step));
    axis.to_ = step * count;
    for (int i = 0; i <= count; ++i) {
        axis.add_tick(step * i);
    }
    return axis;
}

TimeAxis TimeAxis::logarithmic(double least, double most, double left, double right) {
    least = std::clamp(least, shortest_time, longest_time);
    most = std::clamp(most, least, longest_time);
    TimeAxis axis(true, left, right);
    const auto times = round_times(least / 10, most * 10);
    auto first = std::upper_bound(times.begin(), times.end(), least) - 1;
    auto last = std::lower_bound(times.begin(), times.end(), most);
    if (first == last) {
        ++last;
    }
    axis.from_ = axis.place(*first);
    axis.to_ = axis.place(*last);
    // Ticks for which there is room: all, or only the powers of ten.
    const bool all = last - first <= 9;
    for (auto time = first; time <= last; ++time) {
        if (all || (time - times.begin()) % 3 == 0) {
            axis.add_tick(*time);
        }
    }
    return axis;
}

}  // namespace twinkle::cli
