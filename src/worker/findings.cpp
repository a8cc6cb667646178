#include "worker/findings.h"

#include "runtime/verify/run_error.h"

namespace twinkle::worker {

using runtime::Choice;
using runtime::Verdict;

namespace {

// The times come from a child process that has run foreign code.
bool was_measured(const runtime::SizeVerdict& verdict) {
    return verdict.times.size() == 2 && !verdict.times[0].empty() && !verdict.times[1].empty();
}

// Empty: it is right in calls of this size. What is wrong as a whole (gradients, or it has ended
// its process) is so in every size.
std::string problem_in(const Verdict& verdict, std::size_t size) {
    const bool apart = size < verdict.by_size.size();
    if (apart && (!verdict.by_size[size].problem.empty() || !verdict.by_size[size].compared)) {
        return verdict.by_size[size].problem;
    }
    return verdict.right ? "" : verdict.because;
}

}  // namespace

void Findings::note(const SizedSite& sized, const Choice& choice, const Verdict& verdict) {
    const tuning::Candidate candidate = candidate_of(choice);
    const auto& sizes = sized.sizes();
    const bool judged = verdict.by_size.size() == sizes.size();  // else it has ended its process
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (!judged) {
            died_.insert(sized.pair(i, choice));
        }
        if (const std::string problem = problem_in(verdict, i); !problem.empty()) {
            const bool remember = judged && !runtime::says_cannot_be_captured(problem);
            known_.banned(sizes[i].invocation, candidate, problem, remember);
        } else if (judged && was_measured(verdict.by_size[i])) {
            known_.measured(sizes[i].invocation, sized.original(), candidate,
                            verdict.by_size[i].times);
        }
    }
}

std::string Findings::problem_of(const SizedSite& sized, const Choice& choice) const {
    for (const SizedSite::Size& size : sized.sizes()) {
        const auto* entry = known_.find(size.invocation, candidate_of(choice));
        if (entry != nullptr && !entry->problem.empty()) {
            return entry->problem;
        }
    }
    return "";
}

std::optional<Verdict> Findings::wrong_in_all(const SizedSite& sized, const Choice& choice) const {
    std::optional<Verdict> verdict;
    for (std::size_t i = 0; i < sized.sizes().size(); ++i) {
        const SizedSite::Size& size = sized.sizes()[i];
        const auto* entry = known_.find(size.invocation, candidate_of(choice));
        if (entry == nullptr || entry->problem.empty()) {
            if (size.tuned && sized.is_allowed(choice, i)) {
                return std::nullopt;
            }
        } else if (runtime::says_cannot_be_captured(entry->problem)) {
            return std::nullopt;  // its values are right
        } else if (!verdict) {
            verdict.emplace().because = entry->problem;
            verdict->ran = !runtime::says_cannot_be_run(entry->problem) &&
                           !died_.contains(sized.pair(i, choice));
        }
    }
    return verdict;
}

std::optional<Verdict> Findings::all_wrong(const runtime::Site& site,
                                           const SizedSite& sized) const {
    std::optional<Verdict> first;
    for (const Choice& choice : sized.candidates()) {
        const auto verdict = wrong_in_all(sized, choice);
        if (!verdict && site.serves(choice)) {
            return std::nullopt;
        }
        first = first ? first : verdict;
    }
    return first;
}

}  // namespace twinkle::worker
