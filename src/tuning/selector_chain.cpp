#include "base/text.h"
#include "tuning/scopes.h"
#include "tuning/selector_state.h"
#include "twinkle/error.h"

namespace twinkle {

namespace {
constexpr std::size_t most_unstored = 65'536;
}  // namespace

const std::vector<ChosenBy>& ConfigSelectorChain::State::usual_order() {
    static const std::vector<ChosenBy> order = {ChosenBy::argument,    ChosenBy::overlay,
                                                ChosenBy::memory,      ChosenBy::store,
                                                ChosenBy::measurement, ChosenBy::rule};
    return order;
}

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
    if (unstored.size() >= most_unstored) {
        unstored.clear();
    }
    unstored.insert(question.key);
    return std::nullopt;
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
