#pragma once
// What a chain of selectors remembers, and its parts.

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>

#include "tuning/background.h"
#include "twinkle/selector.h"

namespace twinkle {

struct ConfigSelectorChain::State {
    State(ConfigCache memory, PersistentCache store, TuningPolicy usual)
        : cache(std::move(memory)), persistent(std::move(store)), policy(usual) {}

    // Parts are asked in it, unless a program sets another.
    static const std::vector<ChosenBy>& usual_order();

    std::optional<Choice> ask(ChosenBy by, const Question& question);
    std::optional<Choice> from_argument(const Question& question);
    std::optional<Choice> from_store(const Question& question);
    std::optional<Choice> measured(const Question& question);
    ConfigStore::Turn take_turn(const Question& question, double budget_ms);
    std::optional<Choice> measured_now(const Question& question, double budget_ms);
    std::optional<Choice> in_background(const Question& question, double budget_ms);
    std::optional<Choice> keep(const Question& question, const Measurement& measurement);
    void put_off(const std::string& key, std::chrono::steady_clock::time_point until);
    void warn(std::string text);
    TuningPolicy policy_here();

    ConfigCache cache;
    PersistentCache persistent;
    std::atomic<std::uint64_t> changes = 0;

    std::mutex mutex;  // of what follows, up to the background
    TuningPolicy policy;
    std::map<std::string, std::string> given;  // by operation
    std::map<ChosenBy, Part> parts;
    std::vector<ChosenBy> order = usual_order();
    std::set<std::string> unstored;  // keys that the store does not have
    std::map<std::string, std::chrono::steady_clock::time_point>
        again;  // not to be measured before then
    std::vector<std::string> warnings;
    double spent_ms = 0;

    tuning::Background background;  // the last: its thread uses all of them
};

}  // namespace twinkle
