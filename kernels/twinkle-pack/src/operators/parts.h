#pragma once
// In how many parts work is divided among threads.

#include <cstdint>

namespace twinkle_pack {

// From `least` to `most` the number of parts with which the slowest thread takes the least
// `time(parts)`; the fewest of those that take as long.
template <class Time>
int64_t parts_of_least_time(int64_t least, int64_t most, Time time) {
    int64_t best = least;
    double best_time = time(least);
    for (int64_t tried = least + 1; tried <= most; ++tried) {
        const double found = time(tried);
        if (found >= best_time) continue;
        best = tried;
        best_time = found;
    }
    return best;
}

}  // namespace twinkle_pack
