#include "worker/measuring_turns.h"

#include <algorithm>

namespace twinkle::worker {

using runtime::Choice;

std::set<std::size_t> MeasuringTurns::untried(const SizedSite& sized, const Choice& choice,
                                              const Measurements& known) const {
    std::set<std::size_t> sizes = sized.missing(known, choice);
    std::erase_if(sizes,
                  [&](std::size_t size) { return tried_.contains(sized.pair(size, choice)); });
    return sizes;
}

bool MeasuringTurns::claim(const SizedSite& sized, const Choice& choice, const Measurements& known,
                           Pairs& taken) const {
    const auto sizes = untried(sized, choice, known);
    const bool free = std::any_of(sizes.begin(), sizes.end(), [&](std::size_t size) {
        return !held_.contains(sized.sizes()[size].invocation.hash()) &&
               !taken.contains(sized.pair(size, choice));
    });
    if (free) {
        for (const std::size_t size : sizes) {
            taken.insert(sized.pair(size, choice));
        }
    }
    return free;
}

std::set<std::size_t> MeasuringTurns::take(const SizedSite& sized, const Choice& choice,
                                           Measurements& known, Pairs& taken) {
    std::set<std::size_t> timed;
    for (const std::size_t size : untried(sized, choice, known)) {
        const Invocation& invocation = sized.sizes()[size].invocation;
        if (!known.take(invocation, longest_)) {
            held_.insert(invocation.hash());
        } else if (sized.missing(known, choice).contains(size) &&
                   taken.insert(sized.pair(size, choice)).second) {
            timed.insert(size);
        }
    }
    return timed;
}

void MeasuringTurns::hand_over(const SizedSite& sized, const Choice& choice,
                               const std::set<std::size_t>& timed) {
    for (const std::size_t size : timed) {
        tried_.insert(sized.pair(size, choice));
    }
}

}  // namespace twinkle::worker
