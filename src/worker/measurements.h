#pragma once
// What candidates take in calls of one kind: of this run and, before it, of the user's store.

#include "runtime/selection/selection.h"
#include "runtime/verify/timing.h"
#include "tuning/median_bounds.h"
#include "tuning/store.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace twinkle::worker {

class Measurements {
public:
    // Serves this machine and what its children compute with.
    Measurements(tuning::Store store, const std::string& platform, int threads);

    int threads() const { return threads_; }

    // Reads what the store knows of an invocation, once.
    void look_up(const Invocation& invocation);
    // Whether this run is to measure it: nobody else does at the moment. That holds until
    // release().
    bool take(const Invocation& invocation, std::chrono::seconds duration);
    void release() { leases_.clear(); }
    // Reads everything again: others have measured since.
    void look_again() { looked_up_.clear(); }

    // What is known of a candidate; null: nothing.
    const tuning::Entry* find(const Invocation& invocation,
                              const tuning::Candidate& candidate) const;

    // Whether it was found by this run.
    bool is_new(const tuning::Entry& entry) const { return new_.contains(entry.identity()); }

    // A candidate was measured beside the original. Its times are kept as ratios to the original's
    // of the same turn: what slows the machine down for a while slows both. Their bounds are those
    // in which the median of another run is expected.
    void measured(const Invocation& invocation, const tuning::Candidate& original,
                  const tuning::Candidate& candidate, const runtime::Samples& times);
    // It must not be chosen. What ended a process is forgotten with this run: a child may die of
    // something else.
    void banned(const Invocation& invocation, const tuning::Candidate& candidate,
                const std::string& why, bool remember);

    // Why something could not be read or written, each once.
    const std::set<std::string>& warnings() const { return warnings_; }

private:
    void put(tuning::Entry entry, bool remember);

    int threads_;
    tuning::ProcessNoise noise_;
    tuning::Store store_;
    tuning::Environment environment_;
    std::set<std::string> looked_up_;  // hashes of invocations
    tuning::Entries known_;
    std::set<tuning::Entry::Identity> new_;
    std::map<std::string, tuning::Lease> leases_;  // by hash
    std::set<std::string> warnings_;
};

// A candidate of a mapping by its content: the hash of its build, and what is taken of it.
tuning::Candidate candidate_of(const runtime::Choice& choice);

}  // namespace twinkle::worker
