#pragma once
// An axis of times: positions of times, and the ticks along it.

#include <string>
#include <vector>

namespace twinkle::cli {

class TimeAxis {
public:
    struct Tick {
        double us;
        std::string label;  // "2.5 ms"
    };

    // Goes from zero to at least `most` microseconds.
    static TimeAxis linear(double most, double left, double right);
    // Goes from a round time at or below `least` to one at or above `most`; equal ratios have equal
    // distances.
    static TimeAxis logarithmic(double least, double most, double left, double right);

    double at(double us) const;
    const std::vector<Tick>& ticks() const { return ticks_; }
    double left() const { return left_; }
    double right() const { return right_; }

private:
    TimeAxis(bool logarithmic, double left, double right)
        : logarithmic_(logarithmic), left_(left), right_(right) {}
    double place(double us) const;
    void add_tick(double us);

    bool logarithmic_;
    double left_;
    double right_;
    double from_ = 0;  // in what place() gives
    double to_ = 1;
    std::vector<Tick> ticks_;
};

// "812 µs", "1.73 ms": three digits.
std::string drawn_time(double us);

}  // namespace twinkle::cli
