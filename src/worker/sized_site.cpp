#include "worker/sized_site.h"

#include "runtime/graph/format.h"

#include <algorithm>
#include <limits>
#include <map>

namespace twinkle::worker {

using runtime::Choice;
using runtime::SurveyedCall;

namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

std::int64_t product(std::int64_t one, std::int64_t other) {
    return one > 0 && other > most / one ? most : one * other;
}

// The width of an input's rows; 1 where calls differ in it, or one has no tensor there.
std::int64_t width_of(const std::vector<SurveyedCall>& calls, std::size_t input) {
    std::set<std::int64_t> widths;
    for (const SurveyedCall& call : calls) {
        widths.insert(call.extents[input].width);
    }
    return widths.size() == 1 && *widths.begin() > 0 ? *widths.begin() : 1;
}

}  // namespace

SizedSite::SizedSite(const runtime::Site& site, const runtime::SurveyedSite& surveyed,
                     const CallFacts& facts) {
    for (const runtime::Candidate& one : site.candidates) {
        candidates_.push_back(one.choice);
        allowed_.emplace_back();
    }
    original_ = {surveyed.content, base::Json::object(), tuning::Role::original};
    find_input(surveyed.calls);
    std::map<std::int64_t, Size> sizes;
    for (const SurveyedCall& call : surveyed.calls) {
        Size& size = sizes[rows_of(call)];
        if (!size.invocation.operation.empty() && (size.tuned || !call.tuned)) {
            continue;  // the first one that is measured
        }
        size.rows = rows_of(call);
        size.tuned = call.tuned;
        size.invocation = {.operation = site.report.kind + " " + site.report.of,
                           .inputs = call.inputs,
                           .device = facts.platform,
                           .mode = facts.mode,
                           .captured = facts.captured};
        size.invocation.extras["original"] = surveyed.content;
        if (facts.cold) {
            size.invocation.extras["weights"] = "memory";
        }
        if (facts.tolerance != 1) {
            size.invocation.extras["tolerance"] = fmt::format("{}", facts.tolerance);
        }
    }
    for (auto& [rows, size] : sizes) {
        size.tuned = size.tuned && facts.shard.has(size.invocation.hash());
        sizes_.push_back(std::move(size));
    }
}

// The first tensor whose size is not the same in all calls.
void SizedSite::find_input(const std::vector<SurveyedCall>& calls) {
    std::size_t inputs = calls.empty() ? 0 : calls.front().extents.size();
    for (const SurveyedCall& call : calls) {
        inputs = std::min(inputs, call.extents.size());
    }
    for (input_ = 0; input_ < inputs && !varies_; ++input_) {
        width_ = width_of(calls, input_);
        std::set<std::int64_t> rows;
        for (const SurveyedCall& call : calls) {
            rows.insert(call.extents[input_].elements < 0
                            ? -1
                            : size_bucket(call.extents[input_].elements / width_));
        }
        varies_ = rows.size() > 1 && !rows.contains(-1);
    }
    input_ -= varies_ ? 1 : 0;
}

std::int64_t SizedSite::rows_of(const SurveyedCall& call) const {
    const std::int64_t rows = varies_ ? call.extents[input_].elements / width_ : 1;
    return std::max<std::int64_t>(size_bucket(rows), 1);
}

void SizedSite::add(const Choice& choice, std::vector<bool> allowed) {
    candidates_.push_back(choice);
    allowed_.push_back(std::move(allowed));
}

bool SizedSite::is_allowed(const Choice& choice, std::size_t size) const {
    const auto place = std::find(candidates_.begin(), candidates_.end(), choice);
    const auto& allowed = allowed_.at(static_cast<std::size_t>(place - candidates_.begin()));
    return allowed.empty() || allowed.at(size);
}

Pair SizedSite::pair(std::size_t size, const Choice& choice) const {
    return {sizes_[size].invocation.hash(), candidate_of(choice).id()};
}

bool SizedSite::is_reached() const {
    return std::any_of(sizes_.begin(), sizes_.end(), [](const Size& one) { return one.tuned; });
}

void SizedSite::look_up(Measurements& known) const {
    for (const Size& size : sizes_) {
        known.look_up(size.invocation);
    }
}

std::set<std::size_t> SizedSite::missing(const Measurements& known, const Choice& choice) const {
    const tuning::Candidate candidate = candidate_of(choice);
    std::set<std::size_t> missing;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
        const Size& size = sizes_[i];
        const auto* entry = known.find(size.invocation, candidate);
        const bool measured =
            entry != nullptr && (!entry->problem.empty() || known.find(size.invocation, original_));
        if (size.tuned && !measured && is_allowed(choice, i)) {
            missing.insert(i);
        }
    }
    return missing;
}

runtime::SizeGroups SizedSite::groups(std::set<std::size_t> timed) const {
    runtime::SizeGroups groups{input_, {}, std::move(timed)};
    for (const Size& size : sizes_) {
        groups.keys.push_back(size.invocation.hash());
        groups.bounds.push_back(product(size.rows, width_));
    }
    return groups;
}

std::vector<tuning::MeasuredSize> SizedSite::measured(const Measurements& known,
                                                      const runtime::Site& site) const {
    std::vector<tuning::MeasuredSize> all;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
        const Size& size = sizes_[i];
        tuning::MeasuredSize& one = all.emplace_back();
        one.rows = size.rows;
        const auto* original = size.tuned ? known.find(size.invocation, original_) : nullptr;
        if (original != nullptr) {
            one.times.emplace_back(original->times);
        }
        one.banned.push_back(false);
        for (const Choice& choice : candidates_) {
            const auto* entry = known.find(size.invocation, candidate_of(choice));
            const bool timed = entry != nullptr && entry->times.runs > 0;
            one.banned.push_back(!site.serves(choice) || !is_allowed(choice, i) ||
                                 (entry != nullptr && !entry->problem.empty()));
            if (original != nullptr) {
                one.times.push_back(
                    timed ? std::optional(tuning::beside(entry->times, original->times.median))
                          : std::nullopt);
            }
        }
    }
    return all;
}

runtime::ChoiceBySize SizedSite::choice_of(const std::vector<tuning::SizePart>& parts) const {
    runtime::ChoiceBySize choice{input_, {}};
    for (const tuning::SizePart& part : parts) {
        choice.parts.push_back(
            {part.candidate == 0 ? std::nullopt : std::optional(candidates_[part.candidate - 1]),
             product(part.up_to, width_)});
    }
    return choice;
}

}  // namespace twinkle::worker
