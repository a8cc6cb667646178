// How a chain measures: now or in the background, within its budget, one process at a time.

#include <algorithm>

#include "tuning/scopes.h"
#include "tuning/selector_state.h"

namespace twinkle {

using std::chrono::steady_clock;

namespace {

constexpr std::size_t most_warnings = 100;
constexpr std::size_t most_remembered = 65'536;
// Another process measures: when to look again.
constexpr auto patience = std::chrono::seconds(1);

double milliseconds_since(steady_clock::time_point start) {
    return std::chrono::duration<double, std::milli>(steady_clock::now() - start).count();
}

}  // namespace

TuningPolicy ConfigSelectorChain::State::policy_here() {
    const auto& policies = tuning::scopes().policies;
    if (!policies.empty()) {
        return policies.back();
    }
    const std::scoped_lock lock(mutex);
    return policy;
}

void ConfigSelectorChain::State::warn(std::string text) {
    const std::scoped_lock lock(mutex);
    if (warnings.size() < most_warnings &&
        std::find(warnings.begin(), warnings.end(), text) == warnings.end()) {
        warnings.push_back(std::move(text));
    }
}

// Called with the mutex held.
void ConfigSelectorChain::State::put_off(const std::string& key, steady_clock::time_point until) {
    if (again.size() >= most_remembered) {
        again.clear();
    }
    again[key] = until;
}

// What was measured, in memory and in the store; none: every candidate is banned.
std::optional<Choice> ConfigSelectorChain::State::keep(const Question& question,
                                                       const Measurement& measurement) {
    for (const MeasuredCfg& candidate : measurement.candidates) {
        if (!candidate.problem.empty()) {
            warn(question.invocation.operation + " " + candidate.cfg + ": " + candidate.problem);
        }
    }
    if (persistent.store()) {
        const std::string why =
            persistent.store()->keep(question.invocation, question.build, measurement);
        if (!why.empty()) {
            warn("what was measured is not kept: " + why);
        }
    }
    if (measurement.best >= measurement.candidates.size()) {
        return std::nullopt;
    }
    const std::string& best = measurement.candidates[measurement.best].cfg;
    cache.put(question.key, best);
    return Choice{best, ChosenBy::measurement};
}

ConfigStore::Turn ConfigSelectorChain::State::take_turn(const Question& question,
                                                        double budget_ms) {
    if (!persistent.store()) {
        return {};
    }
    const std::chrono::duration<double, std::milli> budget(budget_ms);
    ConfigStore::Turn turn = persistent.store()->take_turn(
        question.invocation, std::chrono::ceil<std::chrono::seconds>(budget));
    if (!turn.ours) {
        const std::scoped_lock lock(mutex);
        put_off(question.key, steady_clock::now() + patience);
        unstored.erase(question.key);  // what the other finds will be there
    }
    return turn;
}

// The configuration is left open where another process measures.
std::optional<Choice> ConfigSelectorChain::State::measured_now(const Question& question,
                                                               double budget_ms) {
    const auto start = steady_clock::now();
    const ConfigStore::Turn turn = take_turn(question, budget_ms);
    if (!turn.ours) {
        return Choice{"", ChosenBy::rule, "measured by " + turn.holder + " now", true};
    }
    std::optional<Choice> choice;
    try {
        choice = keep(question, question.measure(budget_ms));
    } catch (const std::exception& error) {
        warn(question.invocation.operation + " could not be measured: " + error.what());
    }
    const std::scoped_lock lock(mutex);
    spent_ms += milliseconds_since(start);
    if (!choice) {
        put_off(question.key, steady_clock::time_point::max());
    }
    return choice;
}

// The budget is that of the caller's policy, from which is taken what others spend until then.
std::optional<Choice> ConfigSelectorChain::State::in_background(const Question& question,
                                                                double budget_ms) {
    if (!question.detached) {
        return std::nullopt;
    }
    background.add(question.key, [&] {
        Question later = question;  // without what refers to the call
        later.measure = question.detached();
        later.detached = nullptr;
        later.rule = nullptr;
        later.knows = nullptr;
        return [this, budget_ms, later = std::move(later)] {
            double left = 0;
            {
                const std::scoped_lock lock(mutex);
                left = budget_ms - spent_ms;
            }
            measured_now(later, std::max(left, 1.0));
            ++changes;
        };
    });
    return Choice{question.rule(), ChosenBy::rule, "it is being measured in the background", true};
}

std::optional<Choice> ConfigSelectorChain::State::measured(const Question& question) {
    const TuningPolicy here = policy_here();
    const bool background_only = here.when == TuningPolicy::When::background;
    if (!question.measure || (here.when != TuningPolicy::When::first_use && !background_only)) {
        return std::nullopt;
    }
    double left = 0;
    {
        const std::scoped_lock lock(mutex);
        const auto later = again.find(question.key);
        if (later != again.end() && steady_clock::now() < later->second) {
            const bool passing = later->second != steady_clock::time_point::max();
            return passing ? std::optional(Choice{question.rule(), ChosenBy::rule,
                                                  "another process measures it", true})
                           : std::nullopt;
        }
        left = static_cast<double>(here.budget.count()) - spent_ms;
    }
    if (left <= 0) {
        return std::nullopt;
    }
    if (background_only) {
        return in_background(question, static_cast<double>(here.budget.count()));
    }
    auto choice = measured_now(question, left);
    if (choice && choice->provisional) {
        choice->cfg = question.rule();
    }
    return choice;
}

}  // namespace twinkle
