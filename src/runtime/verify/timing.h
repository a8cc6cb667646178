#pragma once
// Times contestants on the same work, in turns so that all see the same machine, and says what
// their differences mean.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace twinkle::runtime {

// With fewer turns no difference counts: all on one side by luck is 1 in 32.
inline constexpr std::size_t fewest_turns = 6;
// From so many on quartiles say something.
inline constexpr std::size_t enough_turns = 12;

struct Sampling {
    std::size_t warm_up = 3;     // unmeasured runs of each: TorchScript profiles its first runs
    std::size_t runs = 0;        // measured ones of each; 0: as many as fit into the budget
    std::size_t least_runs = 1;  // however small the budget is
    // Enough of one that was slower than the first by far in each of them; and from enough_turns on
    // whoever is slower than the fastest by far runs no more, but for the first. 0: however slow it
    // is.
    std::size_t runs_if_lost = 0;
    std::size_t most_runs = 1000;
    double budget_ms = 150;  // of all contestants together
    // Waits for asynchronous work (a GPU's) at the end of a sample. Samples are longer then: runs
    // follow each other as they would in a server.
    std::function<void()> wait{};

    // Samples a whole model in passing: more runs tell no more of a small one.
    static Sampling brief(std::size_t least_runs) {
        return {.least_runs = least_runs, .most_runs = 200, .budget_ms = 1500};
    }
};

// Microseconds of one run, by contestant and turn: entries with the same turn were taken side by
// side.
using Samples = std::vector<std::vector<double>>;

// Each contestant goes first equally often. Work shorter than the clock's resolution is repeated
// within one sample. `between` is called outside of what is measured.
Samples time_in_turns(const std::vector<std::function<void()>>& contestants,
                      const Sampling& sampling, const std::function<void()>& between = {});

struct Spread {
    double lower = 0;  // the quartiles
    double median = 0;
    double upper = 0;
};

// Needs at least one value.
Spread spread_of(std::vector<double> values);

struct Speedup {
    enum class Verdict {
        faster,
        slower,
        none,     // it is inside the spread, or less than 2 %
        unknown,  // too few turns to tell from luck
    };
    Spread ratio;  // how many times as fast as the other: turn by turn, so that what slows the
                   // machine down for a while slows both
    Verdict verdict = Verdict::unknown;
};

// Speedup of `contestant` over `other`. A difference counts if the interquartile ranges of the
// times do not overlap and the quartiles of the ratio are on one side of 1 (with fewer than
// enough_turns, all ratios). With fewer than fewest_turns none counts.
Speedup speedup_of(const std::vector<double>& contestant, const std::vector<double>& other);

const char* verdict_name(Speedup::Verdict verdict);  // "faster", "slower", "none", "unknown"

}  // namespace twinkle::runtime
