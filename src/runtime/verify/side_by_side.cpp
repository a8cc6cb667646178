#include "runtime/verify/side_by_side.h"

#include "base/json.h"
#include "runtime/verify/child_judge.h"
#include "runtime/verify/run_error.h"

#include <exception>
#include <set>

namespace twinkle::runtime {

using base::Json;

SideBySide::SideBySide(const VerificationContext& context, const ModelWeights& weights, Send send)
    : context_(context), weights_(weights), send_(std::move(send)) {}

void SideBySide::add(const std::string& site, const torch::jit::Module& original,
                     const torch::jit::Module& kernelized,
                     const std::vector<std::pair<std::size_t, Calls>>& groups) {
    const auto found = context_.by_size.find(site);
    if (found == context_.by_size.end()) {
        return;
    }
    const SizeGroups& sizes = found->second;
    bool always = sizes.always;
    for (const auto& [group, calls] : groups) {
        const bool alone = context_.apart.contains(site) || sizes.keys.empty();
        entries_.push_back({site, group, original, kernelized, calls, std::exchange(always, false),
                            alone ? site + " " + std::to_string(group) : sizes.keys.at(group)});
    }
}

void SideBySide::measure(const std::function<bool()>& may_time) {
    std::set<std::string> done;
    for (const Entry& first : entries_) {
        if (!done.insert(first.key).second) {
            continue;
        }
        std::vector<const Entry*> together;
        bool always = false;
        for (const Entry& entry : entries_) {
            if (entry.key == first.key) {
                together.push_back(&entry);
                always = always || entry.always;
            }
        }
        if (may_time() || always) {
            measure_together(together);
        }
    }
    for (const Entry& entry : entries_) {
        send_(base::json_line({{"timed", entry.site}}));
    }
}

// All run the first one's calls: sites that are called alike differ in their weights alone.
void SideBySide::measure_together(const std::vector<const Entry*>& entries) const {
    Json sites = Json::array();
    TimedContest contest{entries.front()->original, {}, entries.front()->calls};
    for (const Entry* entry : entries) {
        sites.push_back(entry->site);
        contest.candidates.push_back(entry->kernelized);
    }
    send_(base::json_line({{"timing", sites}}));
    try {
        const Samples times = contest_times(contest, context_, weights_, sign_of_life(send_));
        for (std::size_t i = 0; i < entries.size(); ++i) {
            send_times(*entries[i], {times[0], times[i + 1]}, "");
        }
    } catch (const std::exception& error) {
        if (entries.size() == 1) {
            const bool captured = dynamic_cast<const NotCaptured*>(&error) == nullptr;
            send_times(*entries.front(), {},
                       captured ? cannot_be_run(error.what()) : cannot_be_captured(error.what()));
        }
        for (std::size_t i = 0; entries.size() > 1 && i < entries.size(); ++i) {
            measure_together({entries[i]});
        }
    }
    send_(base::json_line({{"timing", Json::array()}}));
}

void SideBySide::send_times(const Entry& entry, const Samples& times,
                            const std::string& problem) const {
    send_(base::json_line(
        {{"times", times}, {"site", entry.site}, {"group", entry.group}, {"problem", problem}}));
}

}  // namespace twinkle::runtime
