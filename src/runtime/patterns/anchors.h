#pragma once
// Where in a flat graph it is worth looking for a formula.

#include "runtime/patterns/formula.h"

#include <cstddef>
#include <vector>

namespace twinkle::runtime {

struct Exhausted {};

// What looking may cost.
class Steps {
public:
    explicit Steps(std::size_t most) : left_(most) {}

    // Exhausted: that was more.
    void spend() {
        if (left_-- == 0) {
            throw Exhausted{};
        }
    }

private:
    std::size_t left_;
};

// Values that may be the formula's first result: from every node of its rarest operator along its
// users.
std::vector<ValueId> possible_results(const FlatGraph& graph, const Formula& formula, Steps& steps);

}  // namespace twinkle::runtime
