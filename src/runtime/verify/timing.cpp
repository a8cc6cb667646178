#include "runtime/verify/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>

namespace twinkle::runtime {

namespace {

constexpr double shortest_sample_us = 50;  // a thousand times the resolution of the clock
constexpr double shortest_sample_waited_us = 2000;
constexpr double max_repeats = 1000;
constexpr double smallest_difference = 0.02;

double microseconds(const std::function<void()>& work, std::size_t repeats,
                    const Sampling& sampling) {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < repeats; ++i) {
        work();
    }
    if (sampling.wait) {
        sampling.wait();
    }
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
               .count() /
           static_cast<double>(repeats);
}

// The number of repeats is the same for all: it follows the fastest.
std::size_t repeats_for(const std::vector<std::function<void()>>& contestants,
                        const Sampling& sampling) {
    const double shortest = sampling.wait ? shortest_sample_waited_us : shortest_sample_us;
    double fastest = shortest;
    for (const auto& contestant : contestants) {
        fastest = std::min(fastest, microseconds(contestant, 1, sampling));
    }
    return static_cast<std::size_t>(
        std::clamp(std::ceil(shortest / std::max(fastest, 1e-3)), 1.0, max_repeats));
}

// Interpolates if the quantile falls between two values.
double quantile(const std::vector<double>& sorted, double share) {
    const double place = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

constexpr double by_far = 1.5;

// Every sample is slower by far than each of the first contestant.
bool has_lost(const std::vector<double>& samples, const std::vector<double>& first) {
    return *std::min_element(samples.begin(), samples.end()) >
           by_far * *std::max_element(first.begin(), first.end());
}

// Who still runs. Whoever is slower than the first by far stops after few turns; whoever is slower
// than the fastest by far, once quartiles say something. The first goes on while others do: their
// times are ratios to its own of the same turn.
class RemainingContestants {
public:
    RemainingContestants(std::size_t count, std::size_t runs_if_lost)
        : runs_if_lost_(runs_if_lost), out_(count) {}

    bool contain(std::size_t contestant) const { return contestant == 0 || !out_[contestant]; }

    // Whether nothing is left to be found out.
    bool are_decided() const {
        return runs_if_lost_ != 0 && out_.size() > 1 &&
               std::count(out_.begin(), out_.end(), false) < 2;
    }

    void drop_losers(const Samples& samples, std::size_t turns) {
        if (runs_if_lost_ == 0) {
            return;
        }
        for (std::size_t i = 1; i < out_.size() && turns >= runs_if_lost_ && !out_[0]; ++i) {
            out_[i] = out_[i] || has_lost(samples[i], samples[0]);
        }
        if (turns >= enough_turns) {
            drop_behind_fastest(samples);
        }
    }

private:
    void drop_behind_fastest(const Samples& samples) {
        std::vector<Spread> spreads;
        std::transform(samples.begin(), samples.end(), std::back_inserter(spreads), spread_of);
        double fastest = std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < out_.size(); ++i) {
            fastest = out_[i] ? fastest : std::min(fastest, spreads[i].upper);
        }
        for (std::size_t i = 0; i < out_.size(); ++i) {
            out_[i] = out_[i] || spreads[i].lower > by_far * fastest;
        }
    }

    std::size_t runs_if_lost_;
    std::vector<bool> out_;
};

}  // namespace

Samples time_in_turns(const std::vector<std::function<void()>>& contestants,
                      const Sampling& sampling, const std::function<void()>& between) {
    const auto pause = between ? between : [] {};
    for (std::size_t run = 0; run < sampling.warm_up; ++run) {
        for (const auto& contestant : contestants) {
            pause();
            contestant();
        }
    }
    pause();
    if (sampling.wait) {
        sampling.wait();
    }
    const std::size_t repeats = repeats_for(contestants, sampling);
    const auto enough = [&](std::size_t turns, double spent_us) {
        return sampling.runs > 0
                   ? turns >= sampling.runs
                   : turns >= sampling.most_runs ||
                         (turns >= sampling.least_runs && spent_us >= sampling.budget_ms * 1000);
    };
    const std::size_t count = contestants.size();
    Samples samples(count);
    double spent_us = 0;
    RemainingContestants remaining(count, sampling.runs_if_lost);
    for (std::size_t turn = 0; !enough(turn, spent_us) && !remaining.are_decided(); ++turn) {
        for (std::size_t i = 0; i < count; ++i) {
            // Alternates direction, so that no contestant always runs after the same one.
            const std::size_t next = (turn + (turn / count % 2 == 0 ? i : count - i)) % count;
            if (!remaining.contain(next)) {
                continue;
            }
            pause();
            samples[next].push_back(microseconds(contestants[next], repeats, sampling));
            spent_us += samples[next].back() * static_cast<double>(repeats);
        }
        remaining.drop_losers(samples, turn + 1);
    }
    return samples;
}

Spread spread_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return {quantile(values, 0.25), quantile(values, 0.5), quantile(values, 0.75)};
}

Speedup speedup_of(const std::vector<double>& contestant, const std::vector<double>& other) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < std::min(contestant.size(), other.size()); ++i) {
        ratios.push_back(other[i] / std::max(contestant[i], 1e-3));
    }
    if (ratios.empty()) {
        return {};
    }
    Speedup speedup{spread_of(ratios), Speedup::Verdict::none};
    const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
    const bool few = ratios.size() < enough_turns;
    const Spread own = spread_of(contestant);
    const Spread others = spread_of(other);
    if (ratios.size() < fewest_turns) {
        speedup.verdict = Speedup::Verdict::unknown;
    } else if (std::abs(speedup.ratio.median - 1) < smallest_difference) {
        speedup.verdict = Speedup::Verdict::none;
    } else if (own.upper < others.lower && (few ? *least : speedup.ratio.lower) > 1) {
        speedup.verdict = Speedup::Verdict::faster;
    } else if (own.lower > others.upper && (few ? *most : speedup.ratio.upper) < 1) {
        speedup.verdict = Speedup::Verdict::slower;
    }
    return speedup;
}

const char* verdict_name(Speedup::Verdict verdict) {
    switch (verdict) {
        case Speedup::Verdict::faster: return "faster";
        case Speedup::Verdict::slower: return "slower";
        case Speedup::Verdict::none: return "none";
        case Speedup::Verdict::unknown: return "unknown";
    }
    return "unknown";
}

}  // namespace twinkle::runtime
