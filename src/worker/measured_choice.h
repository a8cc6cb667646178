#pragma once
// Which candidate serves a site, by what verification has measured of each beside the original.
//
// Sites of one class whose weights have the same shapes are decided together, by the sums of their
// times: layers of a model are not to differ by luck. The original wins where no candidate is
// surely faster (runtime/verify/timing.h), and of candidates that cannot be told apart the first.

#include "runtime/plan/plan.h"
#include "runtime/verify/verification.h"
#include "twinkle/report.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace twinkle::worker {

class MeasuredChoice {
public:
    // Notes what was measured of the sites that this report has as replaced.
    void note(const Report& report, const std::map<std::string, runtime::Verdict>& verdicts,
              runtime::Plan& plan);

    // Changes the plan: sites that have been measured get a candidate that has not been, or where
    // there is none left the fastest one. Whether anything is to be made again.
    bool change(runtime::Plan& plan);

    // Says in the report how much faster each site is than its original, and the others.
    void enter(Report& report, runtime::Plan& plan) const;

private:
    struct Times {  // microseconds, summed over the sites of a group
        runtime::Spread original;
        runtime::Spread candidate;
    };
    struct Group {
        std::vector<std::pair<runtime::Choice, Times>> measured;  // in the order of preference

        // Of those that can serve the site; null: the original.
        const std::pair<runtime::Choice, Times>* fastest_for(const runtime::Site& site) const;
        const Times* times_of(const runtime::Choice& choice) const;
    };
    using Key = std::tuple<std::string, std::string, std::string>;  // kind, class, shapes

    static Key key_of(const runtime::Site& site);
    bool change(runtime::Plan& plan, runtime::Site& site) const;

    std::map<Key, Group> groups_;
    // By site and candidate (Choice::id).
    std::map<std::pair<std::string, const void*>, std::string> speeds_;
};

}  // namespace twinkle::worker
