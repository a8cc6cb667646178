#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "base/text.h"
#include "tuning/background.h"
#include "tuning/scopes.h"
#include "twinkle/error.h"
#include "twinkle/selector.h"

namespace twinkle {

using std::chrono::steady_clock;

namespace {

constexpr std::size_t most_warnings = 100;
constexpr std::size_t most_remembered = 65'536;
// Another process measures: when to look again.
constexpr auto patience = std::chrono::seconds(1);

const std::vector<ChosenBy> usual_order = {ChosenBy::argument,    ChosenBy::overlay,
                                           ChosenBy::memory,      ChosenBy::store,
                                           ChosenBy::measurement, ChosenBy::rule};

double milliseconds_since(steady_clock::time_point start) {
    return std::chrono::duration<double, std::milli>(steady_clock::now() - start).count();
}

}  // namespace

const char* chosen_by_name(ChosenBy by) {
    switch (by) {
        case ChosenBy::argument: return "argument";
        case ChosenBy::overlay: return "overlay";
        case ChosenBy::memory: return "memory";
        case ChosenBy::store: return "store";
        case ChosenBy::measurement: return "measurement";
        case ChosenBy::rule: return "rule";
    }
    return "rule";
}

struct ConfigSelectorChain::State {
    State(ConfigCache memory, PersistentCache store, TuningPolicy usual)
        : cache(std::move(memory)), persistent(std::move(store)), policy(usual) {}

    std::optional<Choice> ask(ChosenBy by, const Question& question);
    std::optional<Choice> from_argument(const Question& question);
    std::optional<Choice> from_store(const Question& question);
    std::optional<Choice> measured(const Question& question);
    ConfigStore::Turn take_turn(const Question& question, double budget_ms);
    std::optional<Choice> measured_now(const Question& question, double budget_ms);
    std::optional<Choice> in_background(const Question& question);
    std::optional<Choice> keep(const Question& question, const Measurement& measurement);
    void warn(std::string text);
    TuningPolicy policy_here();

    ConfigCache cache;
    PersistentCache persistent;
    std::atomic<std::uint64_t> changes = 0;

    std::mutex mutex;  // of what follows, up to the background
    TuningPolicy policy;
    std::map<std::string, std::string> given;  // by operation
    std::map<ChosenBy, Part> parts;
    std::vector<ChosenBy> order = usual_order;
    std::set<std::string> unstored;                         // keys that the store does not have
    std::map<std::string, steady_clock::time_point> again;  // not to be measured before then
    std::vector<std::string> warnings;
    double spent_ms = 0;

    tuning::Background background;  // the last: its thread uses all of them
};

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

std::optional<Choice> ConfigSelectorChain::State::from_argument(const Question& question) {
    const std::scoped_lock lock(mutex);
    const auto found = given.find(question.invocation.operation);
    return found == given.end() ? std::nullopt
                                : std::optional(Choice{found->second, ChosenBy::argument});
}

namespace {

std::optional<Choice> from_overlays(const Question& question) {
    const auto& overlays = tuning::scopes().overlays;
    for (auto overlay = overlays.rbegin(); overlay != overlays.rend(); ++overlay) {
        if (auto cfg = overlay->get(question.key)) {
            return Choice{std::move(*cfg), ChosenBy::overlay};
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<Choice> ConfigSelectorChain::State::from_store(const Question& question) {
    if (!persistent.store()) {
        return std::nullopt;
    }
    {
        const std::scoped_lock lock(mutex);
        if (unstored.contains(question.key)) {
            return std::nullopt;
        }
    }
    ConfigStore::Found found =
        persistent.store()->find(question.invocation, question.build, question.knows);
    for (std::string& rejected : found.rejected) {
        warn(std::move(rejected));
    }
    if (found.cfg) {
        cache.put(question.key, *found.cfg);
        return Choice{std::move(*found.cfg), ChosenBy::store};
    }
    const std::scoped_lock lock(mutex);
    if (unstored.size() >= most_remembered) {
        unstored.clear();
    }
    unstored.insert(question.key);
    return std::nullopt;
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
        again[question.key] = steady_clock::now() + patience;
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
        again[question.key] = steady_clock::time_point::max();
    }
    return choice;
}

std::optional<Choice> ConfigSelectorChain::State::in_background(const Question& question) {
    if (!question.detached) {
        return std::nullopt;
    }
    background.add(question.key, [&] {
        Question later = question;  // without what refers to the call
        later.measure = question.detached();
        later.detached = nullptr;
        later.rule = nullptr;
        later.knows = nullptr;
        return [this, later = std::move(later)] {
            double left = 0;
            {
                const std::scoped_lock lock(mutex);
                left = static_cast<double>(policy.budget.count()) - spent_ms;
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
        return in_background(question);
    }
    auto choice = measured_now(question, left);
    if (choice && choice->provisional) {
        choice->cfg = question.rule();
    }
    return choice;
}

std::optional<Choice> ConfigSelectorChain::State::ask(ChosenBy by, const Question& question) {
    Part part;
    {
        const std::scoped_lock lock(mutex);
        if (const auto own = parts.find(by); own != parts.end()) {
            part = own->second;
        }
    }
    if (part) {
        return part(question);
    }
    switch (by) {
        case ChosenBy::argument: return from_argument(question);
        case ChosenBy::overlay: return from_overlays(question);
        case ChosenBy::memory:
            if (auto cfg = cache.get(question.key)) {
                return Choice{std::move(*cfg), ChosenBy::memory};
            }
            return std::nullopt;
        case ChosenBy::store: return from_store(question);
        case ChosenBy::measurement: return measured(question);
        case ChosenBy::rule: return Choice{question.rule(), ChosenBy::rule};
    }
    return std::nullopt;
}

ConfigSelectorChain::ConfigSelectorChain(ConfigCache cache, PersistentCache persistent,
                                         TuningPolicy policy)
    : state_(std::make_shared<State>(std::move(cache), std::move(persistent), policy)) {}

Choice ConfigSelectorChain::choose(const Question& question) {
    for (const ChosenBy by : order()) {
        if (auto choice = state_->ask(by, question)) {
            return std::move(*choice);
        }
    }
    return {question.rule(), ChosenBy::rule};
}

void ConfigSelectorChain::learn(const Question& question, const Measurement& measurement) {
    if (policy().when == TuningPolicy::When::never) {
        throw Error(ErrorCode::refused,
                    {.what = "nothing may be measured for this selector",
                     .where = base::printable(question.invocation.operation),
                     .why = "its policy says never",
                     .hint = "policy_override with TuningPolicy::When::offline allows it"});
    }
    state_->keep(question, measurement);
    ++state_->changes;
}

std::uint64_t ConfigSelectorChain::version() const {
    return state_->cache.version() + state_->changes.load(std::memory_order_acquire);
}

const ConfigCache& ConfigSelectorChain::cache() const {
    return state_->cache;
}

TuningPolicy ConfigSelectorChain::policy() const {
    return state_->policy_here();
}

void ConfigSelectorChain::set_policy(TuningPolicy policy) {
    const std::scoped_lock lock(state_->mutex);
    state_->policy = policy;
    ++state_->changes;
}

void ConfigSelectorChain::set_cfg(const std::string& operation, std::optional<std::string> cfg) {
    const std::scoped_lock lock(state_->mutex);
    if (cfg) {
        state_->given[operation] = stable_json(*cfg);
    } else {
        state_->given.erase(operation);
    }
    ++state_->changes;
}

void ConfigSelectorChain::set_part(ChosenBy by, Part part) {
    const std::scoped_lock lock(state_->mutex);
    state_->parts[by] = std::move(part);
    ++state_->changes;
}

void ConfigSelectorChain::set_order(std::vector<ChosenBy> order) {
    if (order.empty() || order.back() != ChosenBy::rule) {
        throw Error(ErrorCode::malformed, {.what = "the last to be asked must be the rule",
                                           .where = "",
                                           .why = "it is the one that always answers",
                                           .hint = ""});
    }
    const std::scoped_lock lock(state_->mutex);
    state_->order = std::move(order);
    ++state_->changes;
}

std::vector<ChosenBy> ConfigSelectorChain::order() const {
    const std::scoped_lock lock(state_->mutex);
    return state_->order;
}

void ConfigSelectorChain::reload() {
    const std::scoped_lock lock(state_->mutex);
    state_->unstored.clear();
    state_->again.clear();
    ++state_->changes;
}

void ConfigSelectorChain::wait() const {
    state_->background.wait();
}

std::vector<std::string> ConfigSelectorChain::warnings() const {
    const std::scoped_lock lock(state_->mutex);
    return state_->warnings;
}

}  // namespace twinkle
