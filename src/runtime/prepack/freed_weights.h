#pragma once
// Gives back the memory of plain weights while others are laid out, so that the process does not
// hold all of them twice.

#include <cstddef>

namespace twinkle::runtime {

class FreedWeights {
public:
    FreedWeights() = default;
    FreedWeights(const FreedWeights&) = delete;
    FreedWeights& operator=(const FreedWeights&) = delete;
    ~FreedWeights();

    // Adds the bytes of a weight that was just freed.
    void add(std::size_t bytes);

private:
    std::size_t bytes_ = 0;
};

}  // namespace twinkle::runtime
