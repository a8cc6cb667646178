#pragma once
// What is known of candidates, by this run and those before it: how fast they are in which calls,
// where they are wrong, and which have ended a child.

#include "runtime/verify/verdict.h"
#include "worker/measurements.h"
#include "worker/sized_site.h"

#include <optional>
#include <set>
#include <string>

namespace twinkle::worker {

class Findings {
public:
    explicit Findings(Measurements known) : known_(std::move(known)) {}

    Measurements& known() { return known_; }
    const Measurements& known() const { return known_; }

    void note(const SizedSite& sized, const runtime::Choice& choice,
              const runtime::Verdict& verdict);

    // Why a candidate may not serve calls of some size; empty: nothing is wrong.
    std::string problem_of(const SizedSite& sized, const runtime::Choice& choice) const;

    // The verdict on the first of the site's candidates where each is wrong in all sizes. None: one
    // is right in a size, or that is not known.
    std::optional<runtime::Verdict> all_wrong(const runtime::Site& site,
                                              const SizedSite& sized) const;

private:
    std::optional<runtime::Verdict> wrong_in_all(const SizedSite& sized,
                                                 const runtime::Choice& choice) const;

    Measurements known_;
    Pairs died_;  // in a child that they have ended
};

}  // namespace twinkle::worker
