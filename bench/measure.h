#pragma once
// Times of contestants that take turns.

#include <string>
#include <vector>

#include "contestants.h"

namespace bench {

struct Timing {
    std::string name;
    double least, low, median, high;  // seconds a call; low and high: quartiles
};

// Takes one sample of each in turn, so that a disturbance of the machine affects all, in a changing
// order. For about `budget` seconds, and at least a few rounds.
std::vector<Timing> measure(std::vector<Contestant> contestants, const std::vector<Values>& inputs,
                            double budget);

}  // namespace bench
