#include "runtime/verify/two_processes.h"

#include <algorithm>

namespace twinkle::runtime {

namespace {

// The original and a candidate, turn by turn: one that has lost early has fewer. Empty where there
// was no time left.
void append_turns(Samples& all, const Samples& more) {
    if (all.empty()) {
        all = more;
        return;
    }
    if (all.size() != 2 || more.size() != 2) {
        return;
    }
    const std::size_t known = std::min(all[0].size(), all[1].size());
    const std::size_t added = std::min(more[0].size(), more[1].size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].resize(known);
        all[i].insert(all[i].end(), more[i].begin(),
                      more[i].begin() + static_cast<std::ptrdiff_t>(added));
    }
}

void add(Verdict& verdict, const Verdict& again) {
    if (!again.right || again.by_size.size() != verdict.by_size.size()) {
        verdict = again;
        return;
    }
    for (std::size_t i = 0; i < verdict.by_size.size(); ++i) {
        SizeVerdict& size = verdict.by_size[i];
        if (!again.by_size[i].problem.empty()) {
            size = again.by_size[i];
        } else if (size.problem.empty()) {
            append_turns(size.times, again.by_size[i].times);
        }
    }
}

}  // namespace

void add_measured(std::map<std::string, Verdict>& verdicts,
                  const std::map<std::string, Verdict>& again) {
    for (auto& [site, verdict] : verdicts) {
        const auto found = again.find(site);
        if (verdict.right && found != again.end()) {
            add(verdict, found->second);
        }
    }
}

}  // namespace twinkle::runtime
