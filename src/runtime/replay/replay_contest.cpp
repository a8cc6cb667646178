#include "runtime/replay/replay_contest.h"

#include "runtime/replay/same_results.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

namespace twinkle::runtime {

namespace {

constexpr int warm_up = 2;  // LibTorch optimizes a plain run in the second one
constexpr int most_turns = 9;
constexpr int least_turns = 3;
constexpr double most_seconds = 1;
// A replay holds memory, and times vary: it has to be faster than this part of a plain run.
constexpr double worth_it = 0.97;

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace

double steady_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

std::string milliseconds(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f ms", seconds * 1e3);
    return text;
}

std::string replay_objection(const std::function<c10::IValue()>& plain, const Contestant& replay) {
    const c10::IValue expected = plain();
    return same_results(replay.run(), expected) ? ""
                                                : "a replay gives other values than a plain run";
}

ContestResult replay_contest(const std::function<c10::IValue()>& plain, const Contestant& replay,
                             const std::function<double()>& clock) {
    for (int i = 0; i < warm_up; ++i) {
        if (std::string objection = replay_objection(plain, replay); !objection.empty()) {
            return {{}, std::move(objection)};
        }
    }
    replay.wait();
    std::vector<double> plain_times, replay_times;
    const auto timed = [&](const std::function<c10::IValue()>& run, std::vector<double>& times) {
        const double begin = clock();
        {
            const c10::IValue result = run();
            replay.wait();
        }
        times.push_back(clock() - begin);
    };
    const double begin = clock();
    for (int turn = 0; turn < most_turns && (turn < least_turns || clock() - begin < most_seconds);
         ++turn) {
        if (turn % 2 == 0) {
            timed(plain, plain_times);
            timed(replay.run, replay_times);
        } else {
            timed(replay.run, replay_times);
            timed(plain, plain_times);
        }
    }
    const ContestTimes times{median(plain_times), median(replay_times)};
    if (times.replay > worth_it * times.plain) {
        return {times, "a replay is not faster than a plain run"};
    }
    return {times, {}};
}

}  // namespace twinkle::runtime
