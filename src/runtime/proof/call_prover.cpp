#include "runtime/proof/call_prover.h"

#include "runtime/verify/call_recorder.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace twinkle::runtime {

namespace {

constexpr std::size_t calls_per_region = 4;
// A piece that cannot be cut out is most often half a call: worse than a call with a result or two
// too few.
constexpr std::size_t pieces_of_no_region = 3;

std::size_t left_by(const tl::expected<Region, std::string>& region, const Answer::Bound& binding) {
    if (!region) {
        return pieces_of_no_region;
    }
    return !binding ? region->results.size()
                    : static_cast<std::size_t>(std::count(binding->results.begin(),
                                                          binding->results.end(), std::nullopt));
}

}  // namespace

CallProver::CallProver(const std::vector<Question>& questions, const std::function<void()>& run)
    : questions_(questions) {
    std::vector<Region> regions;
    for (const Question& question : questions_) {
        for (const auto& split : question.splits) {
            for (const auto& region : split) {
                if (region) {
                    numbers_.emplace(&*region, regions.size());
                    regions.push_back(*region);
                }
            }
        }
    }
    recorded_ = record_regions(regions, calls_per_region, run);
}

Answer CallProver::answer(const Question& question, const Dead& dead,
                          const std::function<void(std::size_t candidate)>& begin) {
    std::vector<std::optional<Way>> ways(question.candidates.size());
    std::optional<std::size_t> split;
    for (std::size_t i = 0; i < ways.size() && !split; ++i) {
        if (!dead.contains(i)) {
            begin(i);
            ways[i] = best_way(question, *question.candidates[i]);
            split = ways[i]->left == 0 ? std::optional(ways[i]->split) : std::nullopt;
        }
    }
    const auto first =
        std::find_if(ways.begin(), ways.end(), [](const auto& way) { return way.has_value(); });
    Answer answer{split.value_or(first != ways.end() ? (*first)->split : 0), {}};
    answer.calls.resize(question.splits[answer.split].size());
    for (std::size_t i = 0; i < ways.size(); ++i) {
        std::vector<Answer::Bound> calls;
        if (const auto died = dead.find(i); died != dead.end()) {
            calls.assign(answer.calls.size(), tl::make_unexpected(died->second));
        } else if (ways[i] && ways[i]->split == answer.split) {
            calls = std::move(ways[i]->calls);
        } else {
            begin(i);
            calls = way_of(question, answer.split, *question.candidates[i]).calls;
        }
        for (std::size_t call = 0; call < calls.size(); ++call) {
            answer.calls[call].push_back(std::move(calls[call]));
        }
    }
    return answer;
}

CallProver::Way CallProver::way_of(const Question& question, std::size_t split,
                                   const Substitutes& substitutes) {
    Way way{split};
    for (const auto& region : question.splits[split]) {
        way.calls.push_back(bind(region, substitutes));
        const Answer::Bound& binding = way.calls.back();
        way.left += left_by(region, binding);
        way.unusual += binding ? binding->unusual : 0;
        way.leaks += binding ? region->leaks.size() : 0;
    }
    return way;
}

CallProver::Way CallProver::best_way(const Question& question, const Substitutes& substitutes) {
    std::optional<Way> best;
    for (std::size_t i = 0; i < question.splits.size(); ++i) {
        Way way = way_of(question, i, substitutes);
        const bool perfect = way.left + way.unusual + way.leaks == 0;
        if (!best || way.rank() < best->rank()) {
            best = std::move(way);
        }
        if (perfect) {
            break;
        }
    }
    return *std::move(best);
}

Answer::Bound CallProver::bind(const tl::expected<Region, std::string>& region,
                               const Substitutes& substitutes) {
    if (!region) {
        return tl::make_unexpected("it cannot be cut out: " + region.error());
    }
    const auto& recorded = recorded_.at(numbers_.at(&*region));
    if (recorded.empty()) {
        return tl::make_unexpected("these inputs do not reach it");
    }
    return search_.find(*region, substitutes, recorded);
}

}  // namespace twinkle::runtime
