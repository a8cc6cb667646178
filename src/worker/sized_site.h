#pragma once
// A site's calls by their size, as what the store of measurements is asked for.

#include "runtime/plan/site.h"
#include "runtime/tuning/site_survey.h"
#include "tuning/choice_by_size.h"
#include "tuning/record_file.h"
#include "worker/measurements.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace twinkle::worker {

// What holds for all sites of a run.
struct CallFacts {
    std::string platform;
    RunMode mode = RunMode::inference;
    double tolerance = 1;
    tuning::Shard shard{};  // of what is measured
    bool cold = false;      // weights come from memory (Survey::cold)
    bool captured = false;  // measured as CUDA graphs
};

// A kind of call and a candidate, by their hashes: equal for sites that are called alike.
using Pair = std::pair<std::string, std::string>;
using Pairs = std::set<Pair>;

class SizedSite {
public:
    SizedSite(const runtime::Site& site, const runtime::SurveyedSite& surveyed,
              const CallFacts& facts);

    struct Size {
        std::int64_t rows = 1;  // calls with up to so many rows, and more than half as many
        Invocation invocation;  // of the first of them
        bool tuned = false;     // to be measured, by this run
    };
    // Ascending. Where no input tells sizes apart there is one, for all calls.
    const std::vector<Size>& sizes() const { return sizes_; }
    // Follow the order of the mapping; configured ones come after all others.
    const std::vector<runtime::Choice>& candidates() const { return candidates_; }
    // Adds what may serve calls of some sizes alone: all where `allowed` says so, by size.
    void add(const runtime::Choice& choice, std::vector<bool> allowed);
    const tuning::Candidate& original() const { return original_; }
    Pair pair(std::size_t size, const runtime::Choice& choice) const;
    bool is_reached() const;
    // Whether it may serve calls of a size.
    bool is_allowed(const runtime::Choice& choice, std::size_t size) const;

    void look_up(Measurements& known) const;
    // Sizes to be measured of which nothing is known for a candidate.
    std::set<std::size_t> missing(const Measurements& known, const runtime::Choice& choice) const;
    runtime::SizeGroups groups(std::set<std::size_t> timed) const;
    // Returns by size what is known of the original and then of each candidate.
    std::vector<tuning::MeasuredSize> measured(const Measurements& known,
                                               const runtime::Site& site) const;
    // Parts by rows as parts by elements, with their candidates.
    runtime::ChoiceBySize choice_of(const std::vector<tuning::SizePart>& parts) const;

private:
    void find_input(const std::vector<runtime::SurveyedCall>& calls);
    std::int64_t rows_of(const runtime::SurveyedCall& call) const;

    std::size_t input_ = 0;
    std::int64_t width_ = 1;  // elements in a row
    bool varies_ = false;     // with the input's size
    std::vector<Size> sizes_;
    std::vector<runtime::Choice> candidates_;
    std::vector<std::vector<bool>> allowed_;  // by candidate and size; empty: in all sizes
    tuning::Candidate original_;
};

}  // namespace twinkle::worker
