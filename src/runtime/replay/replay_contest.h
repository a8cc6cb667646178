#pragma once
// Whether a replay is worth having: measured against plain runs, in turns, on the inputs of a call.

#include "runtime/replay/model_graphs.h"

#include <functional>
#include <string>

namespace twinkle::runtime {

struct ContestTimes {
    double plain = 0;  // seconds, medians
    double replay = 0;
};

struct ContestResult {
    ContestTimes times;
    std::string objection;  // to the replay; empty: it is faster
};

// Whether a replay gives what a plain run does; empty: it does.
std::string replay_objection(const std::function<c10::IValue()>& plain, const Contestant& replay);

// Both wait for the device after each run. `clock`: seconds.
ContestResult replay_contest(const std::function<c10::IValue()>& plain, const Contestant& replay,
                             const std::function<double()>& clock);
double steady_seconds();

std::string milliseconds(double seconds);  // "1.234 ms"

}  // namespace twinkle::runtime
