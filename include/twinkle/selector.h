#pragma once
// Which configuration a call gets, and who says so. Needs no LibTorch.
//
// Everything here is thread-safe. ConfigCache, PersistentCache and ConfigSelectorChain are handles:
// copies share what they hold.

#include "twinkle/api.h"
#include "twinkle/invocation.h"
#include "twinkle/tuning_config.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace twinkle {

// In the order in which they are asked.
enum class ChosenBy {
    argument,     // the configuration was given with the call, or for the operation
    overlay,      // overlay_cache of this thread
    memory,       // ConfigCache: measured in this process, or read before
    store,        // PersistentCache: measured by whatever process
    measurement,  // just now
    rule,         // nobody has measured: heuristic_cfg
};
TWINKLE_API const char* chosen_by_name(ChosenBy by);  // "argument", "overlay", …

struct Choice {
    std::string cfg;  // stable JSON
    ChosenBy by = ChosenBy::rule;
    std::string note{};        // why nobody better was heard: "measured by process 4711 now"
    bool provisional = false;  // a later call may get another answer: it is being measured
};

// One configuration, measured. Times are microseconds of one call.
struct MeasuredCfg {
    std::string cfg;
    double lower_us = 0;  // quartiles
    double median_us = 0;
    double upper_us = 0;
    std::size_t runs = 0;
    std::string problem{};  // why it is banned: "wrong values", "it threw: …"; empty: it is not
};

struct Measurement {
    std::vector<MeasuredCfg> candidates;  // the rule's first
    // The first that is not surely slower than the fastest; candidates.size(): all are banned.
    std::size_t best = 0;
};

// A call that wants a configuration.
struct Question {
    Invocation invocation{};
    std::string key{};    // of caches: invocation.key(), or what a key builder makes
    std::string build{};  // what of the code a measurement depends on
    std::function<std::string()> rule{};
    // Whether the operation knows a configuration (as stable JSON) that comes from a store; empty:
    // any.
    std::function<bool(const std::string& cfg)> knows{};
    // Measures with the arguments of the call, in so many milliseconds; empty: not now.
    using Measure = std::function<Measurement(double budget_ms)>;
    Measure measure{};
    // The same on copies of the arguments, for another thread and a later time.
    std::function<Measure()> detached{};
};

// Keys and configurations. Holds at most 65,536; then it is emptied.
class TWINKLE_API ConfigCache {
public:
    ConfigCache();

    void put(const std::string& key, std::string cfg);
    template <Configuration Cfg>
    void put(const std::string& key, const Cfg& cfg) {
        put(key, to_json(cfg));
    }
    std::optional<std::string> get(const std::string& key) const;
    template <Configuration Cfg>
    std::optional<Cfg> get(const std::string& key) const {
        const auto cfg = get(key);
        return cfg ? std::optional<Cfg>(from_json<Cfg>(*cfg)) : std::nullopt;
    }
    bool contains(const std::string& key) const { return get(key).has_value(); }
    std::size_t size() const;
    void clear();
    std::uint64_t version() const;  // rises with every change

private:
    struct State;
    std::shared_ptr<State> state_;
};

// Where measurements outlive a process. Derive from it to keep them elsewhere than in files.
class TWINKLE_API ConfigStore {
public:
    virtual ~ConfigStore() = default;

    struct Found {
        std::optional<std::string> cfg{};
        std::vector<std::string> rejected{};  // what was there and could not be used, and why
    };
    // The best of what was measured with this build, on a device like this one, among what the
    // operation `knows` (empty: everything). Throws nothing of its own.
    virtual Found find(const Invocation& invocation, const std::string& build,
                       const std::function<bool(const std::string& cfg)>& knows) = 0;
    // Empty, or why it was not kept. Throws nothing.
    virtual std::string keep(const Invocation& invocation, const std::string& build,
                             const Measurement& measurement) = 0;

    struct Turn {
        bool ours = true;              // nobody else measures this
        std::string holder{};          // who does
        std::shared_ptr<void> held{};  // given back when it goes
    };
    virtual Turn take_turn(const Invocation&, std::chrono::seconds) { return {}; }
};

// The store of `twinkle tune show`, or one in another folder: a file for each measurement, no
// locks. A full disk, a read-only folder or a damaged file is a miss, and said in
// ConfigSelectorChain::warnings().
class TWINKLE_API PersistentCache {
public:
    // Empty: $XDG_CACHE_HOME/twinkle/tuning, else ~/.cache/twinkle/tuning.
    explicit PersistentCache(const std::filesystem::path& folder = {});
    explicit PersistentCache(std::shared_ptr<ConfigStore> store) : store_(std::move(store)) {}
    static PersistentCache none() { return PersistentCache(std::shared_ptr<ConfigStore>()); }

    const std::shared_ptr<ConfigStore>& store() const { return store_; }

private:
    std::shared_ptr<ConfigStore> store_;
};

// When something that nobody has measured may be measured.
struct TuningPolicy {
    enum class When {
        never,       // not even by autotune() through a selector
        offline,     // by autotune() and autotune_recorded() alone
        first_use,   // in the call that asks, as long as the budget lasts
        background,  // on copies of its arguments, in a thread; the rule answers until then
    };
    When when = When::offline;
    // Limits all that calls cause together. What autotune() measures does not count.
    std::chrono::milliseconds budget = std::chrono::seconds(10);

    TuningPolicy() = default;
    TuningPolicy(When when,
                 std::chrono::milliseconds budget =  // NOLINT(google-explicit-constructor)
                 std::chrono::seconds(10))
        : when(when), budget(budget) {}
};

class TWINKLE_API ConfigSelector {
public:
    virtual ~ConfigSelector() = default;
    // Never throws for what a store or a measurement does; the rule's exceptions pass.
    virtual Choice choose(const Question& question) = 0;
    // Remembers what autotune() has measured. Throws Error(refused) where the policy says never.
    virtual void learn(const Question& question, const Measurement& measurement) = 0;
    // Rises whenever an answer may have become another one.
    virtual std::uint64_t version() const = 0;
};

class TWINKLE_API ConfigSelectorChain final : public ConfigSelector {
public:
    // Looks in memory and in the user's store.
    ConfigSelectorChain();
    explicit ConfigSelectorChain(ConfigCache cache,
                                 PersistentCache persistent = PersistentCache::none(),
                                 TuningPolicy policy = {});

    Choice choose(const Question& question) override;
    void learn(const Question& question, const Measurement& measurement) override;
    std::uint64_t version() const override;

    const ConfigCache& cache() const;
    TuningPolicy policy() const;  // of this thread: policy_override, else the chain's
    void set_policy(TuningPolicy policy);

    // Holds for every call of the operation, whatever its arguments; none: no longer.
    void set_cfg(const std::string& operation, std::optional<std::string> cfg);

    // A part answers, or leaves it to the next one.
    using Part = std::function<std::optional<Choice>(const Question&)>;
    void set_part(ChosenBy by, Part part);
    // Which parts are asked and in which order. Throws Error(malformed) without `rule` at the end.
    void set_order(std::vector<ChosenBy> order);
    std::vector<ChosenBy> order() const;

    // Looks into the store again for what was not there: other processes may have tuned since.
    void reload();
    // Waits until everything that was put into the background is measured.
    void wait() const;
    // What could not be read, written or measured; the first hundred.
    std::vector<std::string> warnings() const;

private:
    struct State;
    std::shared_ptr<State> state_;
};

// While it lives, calls of this thread find these configurations first. The innermost counts.
class TWINKLE_API overlay_cache {
public:
    explicit overlay_cache(ConfigCache cache);
    overlay_cache(std::initializer_list<std::pair<std::string, std::string>> keys_and_cfgs);
    ~overlay_cache();
    overlay_cache(const overlay_cache&) = delete;
    overlay_cache& operator=(const overlay_cache&) = delete;
};

// While it lives, this policy holds for calls of this thread. The innermost counts.
class TWINKLE_API policy_override {
public:
    explicit policy_override(TuningPolicy policy);
    ~policy_override();
    policy_override(const policy_override&) = delete;
    policy_override& operator=(const policy_override&) = delete;
};

namespace detail {
// How many of these two live in this thread.
TWINKLE_API int scopes_of_thread();
}  // namespace detail

}  // namespace twinkle
