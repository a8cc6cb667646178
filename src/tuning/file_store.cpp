#include "tuning/file_store.h"

#include <algorithm>
#include <cmath>

#include "base/file.h"

namespace twinkle::tuning {
namespace {

std::int64_t nanoseconds(double microseconds) {
    return std::max<std::int64_t>(1, std::llround(microseconds * 1000));
}

// Beside the rule's configuration, which is the first.
Times times_of(const MeasuredCfg& measured, const MeasuredCfg& rule) {
    if (measured.runs == 0) {
        return {};
    }
    return {nanoseconds(measured.lower_us), nanoseconds(measured.median_us),
            nanoseconds(measured.upper_us), static_cast<std::int64_t>(measured.runs),
            rule.runs == 0 ? 0 : nanoseconds(rule.median_us)};
}

}  // namespace

std::vector<Entry> entries_of(const Environment& environment, const Invocation& invocation,
                              const std::string& build, const Measurement& measurement) {
    std::vector<Entry> entries;
    for (const MeasuredCfg& measured : measurement.candidates) {
        const Role role = entries.empty() ? Role::rule : Role::other;
        entries.push_back({environment,
                           invocation,
                           {build, base::parse_json(measured.cfg, "configuration"), role},
                           times_of(measured, measurement.candidates.front()),
                           measured.problem});
    }
    return entries;
}

std::size_t best_of(const Measurement& measurement, const std::string& build) {
    const auto entries = entries_of(Environment(base::Json::object()), {}, build, measurement);
    std::vector<const Entry*> all;
    for (const Entry& entry : entries) {
        all.push_back(&entry);
    }
    const std::ptrdiff_t best = choose(all);
    return best < 0 ? entries.size() : static_cast<std::size_t>(best);
}

Environment FileStore::environment(const std::string& device) {
    const ProcessFacts process = process_();
    const std::scoped_lock lock(mutex_);
    const std::pair key(device, process.threads);
    const auto found = environments_.find(key);
    return found != environments_.end()
               ? found->second
               : environments_.emplace(key, environment_of(device, machine_, process))
                     .first->second;
}

ConfigStore::Found FileStore::find(const Invocation& invocation, const std::string& build,
                                   const std::function<bool(const std::string& cfg)>& knows) {
    const Store::Found found = store_.find(environment(invocation.device), invocation);
    Found answer;
    for (const auto& [file, rejected] : found.rejected) {
        answer.rejected.push_back(base::display_path(file) + ": " + rejected.why);
    }
    std::vector<const Entry*> known;
    for (const Entry& entry : found.entries) {
        if (entry.candidate.build == build &&
            (!knows || knows(base::json_line(entry.candidate.cfg)))) {
            known.push_back(&entry);
        }
    }
    const bool whole = std::any_of(known.begin(), known.end(), [](const Entry* entry) {
        return entry->candidate.role != Role::other;
    });
    if (const auto taken = whole ? choose(known) : -1; taken >= 0) {
        answer.cfg = base::json_line(known[static_cast<std::size_t>(taken)]->candidate.cfg);
    }
    return answer;
}

// The rule's last: until it is there, nothing of this counts, so that nobody believes the half of
// what a process had measured when it was killed, or the disk was full.
std::string FileStore::keep(const Invocation& invocation, const std::string& build,
                            const Measurement& measurement) {
    auto entries = entries_of(environment(invocation.device), invocation, build, measurement);
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
        if (const std::string problem = store_.put(*entry); !problem.empty()) {
            return base::display_path(store_.root()) + ": " + problem;
        }
    }
    return "";
}

ConfigStore::Turn FileStore::take_turn(const Invocation& invocation,
                                       std::chrono::seconds duration) {
    LeaseAttempt attempt = store_.lease(environment(invocation.device), invocation, duration);
    Turn turn;
    turn.ours = attempt.holder.empty();  // where no lease can be had, nobody else is kept away
    turn.holder = std::move(attempt.holder);
    if (attempt.lease) {
        turn.held = std::make_shared<Lease>(std::move(*attempt.lease));
    }
    return turn;
}

}  // namespace twinkle::tuning
