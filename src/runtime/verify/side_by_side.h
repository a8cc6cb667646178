#pragma once
// Sites that are called alike, each with another candidate, measured in one contest: their times
// compare with each other, whatever the machine does meanwhile, and the original runs once for all.
//
// Runs in the child, after values were compared. Sends {"timing"}, the sites of a contest, before
// it; {"times"} of each of them after it; and {"timed"}, a site of which nothing more will be
// measured.

#include "runtime/verify/contest_times.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace twinkle::runtime {

class SideBySide {
public:
    SideBySide(const VerificationContext& context, const ModelWeights& weights, Send send);

    // What is to be measured of a site: groups of its calls, the most important first.
    void add(const std::string& site, const torch::jit::Module& original,
             const torch::jit::Module& kernelized,
             const std::vector<std::pair<std::size_t, Calls>>& groups);
    // Measures in the order in which they were added, as long as there is time.
    void measure(const std::function<bool()>& may_time);

private:
    struct Entry {
        std::string site;
        std::size_t group = 0;
        torch::jit::Module original, kernelized;
        Calls calls;
        bool always = false;
        std::string key;  // the same for what is measured together
    };

    void measure_together(const std::vector<const Entry*>& entries) const;
    void send_times(const Entry& entry, const Samples& times, const std::string& problem) const;

    const VerificationContext& context_;
    const ModelWeights& weights_;
    Send send_;
    std::vector<Entry> entries_;
};

}  // namespace twinkle::runtime
