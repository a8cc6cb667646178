#pragma once
// Finds on a run of the model which candidates compute what its regions compute.

#include "runtime/proof/binding_search.h"
#include "runtime/proof/question.h"

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace twinkle::runtime {

// Not thread-safe. `questions` must outlive it.
class CallProver {
public:
    // By candidate: why it is not to be tried.
    using Dead = std::map<std::size_t, std::string>;

    // Runs the model once and records what the regions get. Throws what `run` throws.
    CallProver(const std::vector<Question>& questions, const std::function<void()>& run);

    // `begin` is called before a candidate is tried.
    Answer answer(const Question& question, const Dead& dead,
                  const std::function<void(std::size_t candidate)>& begin);

private:
    // One candidate in one split.
    struct Way {
        std::size_t split = 0;
        std::vector<Answer::Bound> calls{};
        std::size_t left = 0;  // results that the original nodes go on computing
        std::size_t unusual = 0;
        std::size_t leaks = 0;

        // A call that cannot be replaced leaves all of its results. Of several splits that leave as
        // many, the one of most calls wins, because one big call would say nothing of those inside.
        // If none leaves any, the one with the fewest guesses.
        auto rank() const {
            const std::size_t fewer = SIZE_MAX - calls.size();
            return std::array{left, left > 0 ? fewer : 0, unusual, leaks, fewer};
        }
    };

    Way way_of(const Question& question, std::size_t split, const Substitutes& substitutes);
    Way best_way(const Question& question, const Substitutes& substitutes);
    Answer::Bound bind(const tl::expected<Region, std::string>& region,
                       const Substitutes& substitutes);

    const std::vector<Question>& questions_;
    std::map<const Region*, std::size_t> numbers_;
    std::vector<std::vector<std::vector<c10::IValue>>> recorded_;
    BindingSearch search_;
};

}  // namespace twinkle::runtime
