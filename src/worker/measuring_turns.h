#pragma once
// Which run measures what, and when: a candidate in one kind of call is measured once, by one of
// the runs that share a store.

#include "worker/measurements.h"
#include "worker/sized_site.h"

#include <chrono>
#include <set>
#include <string>

namespace twinkle::worker {

class MeasuringTurns {
public:
    explicit MeasuringTurns(std::chrono::seconds longest) : longest_(longest) {}

    // Sizes in which a candidate is still to be measured, by this run or another.
    std::set<std::size_t> untried(const SizedSite& sized, const runtime::Choice& choice,
                                  const Measurements& known) const;

    // Adds what is untried of a candidate to `taken`, if this run may measure some of it that is
    // not there yet. Whether it may.
    bool claim(const SizedSite& sized, const runtime::Choice& choice, const Measurements& known,
               Pairs& taken) const;

    // Sizes in which this run measures a candidate now: no other run does, and they are not in
    // `taken`, to which they are added.
    std::set<std::size_t> take(const SizedSite& sized, const runtime::Choice& choice,
                               Measurements& known, Pairs& taken);
    // These are now being measured: not again, whatever comes of it.
    void hand_over(const SizedSite& sized, const runtime::Choice& choice,
                   const std::set<std::size_t>& timed);

    // Other runs may have ended.
    void look_again() { held_.clear(); }

private:
    std::chrono::seconds longest_;  // that this run may take to measure
    Pairs tried_;                   // that were handed over
    std::set<std::string> held_;    // invocations that another run measures
};

}  // namespace twinkle::worker
