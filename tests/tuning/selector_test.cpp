#include "twinkle/selector.h"

#include <atomic>
#include <limits>
#include <thread>

#include "base/temp_folder.h"
#include "base/throws.h"
#include "catch.h"
#include "target/virtual_machine.h"
#include "tuning/file_store.h"
#include "tuning/samples.h"

using namespace twinkle;
using test::error_of;
using When = TuningPolicy::When;

namespace {

struct Cfg {
    int threads = 128;
    bool fast = true;
    double factor = 1.5;
    std::string kind = "a";
    template <class Self, class Visit>
    static void fields(Self& self, Visit&& visit) {
        visit("threads", self.threads);
        visit("fast", self.fast);
        visit("factor", self.factor);
        visit("kind", self.kind);
    }
    bool operator==(const Cfg&) const = default;
};

const std::string by_rule = R"({"threads":128})";
const std::string faster = R"({"threads":256})";

Measurement measured(double rule_us = 10, double other_us = 5, std::size_t runs = 10) {
    return {
        {{by_rule, rule_us, rule_us, rule_us, runs}, {faster, other_us, other_us, other_us, runs}},
        other_us < rule_us ? 1U : 0U};
}

Question question(std::int64_t rows = 128, const std::string& build = "a build") {
    Question question{test::an_invocation(rows), test::an_invocation(rows).key(), build};
    question.rule = [] { return by_rule; };
    question.measure = [](double) { return measured(); };
    question.detached = [] { return [](double) { return measured(); }; };
    return question;
}

class Stores {
public:
    PersistentCache open() const {
        return PersistentCache(
            std::make_shared<tuning::FileStore>(tuning::Store(folder.path()), machine,
                                                [] { return tuning::ProcessFacts{.threads = 2}; }));
    }
    test::TempFolder folder;
    test::VirtualMachine machine;
};

// Where somebody else measures, or nothing can be kept.
struct OddStore : ConfigStore {
    Found find(const Invocation&, const std::string&,
               const std::function<bool(const std::string&)>&) override {
        ++asked;
        return {{}, {"damaged.json: it is no entry"}};
    }
    std::string keep(const Invocation&, const std::string&, const Measurement&) override {
        return "the disk is full";
    }
    Turn take_turn(const Invocation&, std::chrono::seconds) override {
        return {holder.empty(), holder, nullptr};
    }
    std::string holder;
    int asked = 0;
};

}  // namespace

TEST_CASE("configurations are JSON and back") {
    const Cfg cfg{.threads = 64, .fast = false, .factor = 0.1, .kind = "b\"c"};
    CHECK(to_json(cfg) == R"({"factor":0.1,"fast":false,"kind":"b\"c","threads":64})");
    CHECK(from_json<Cfg>(to_json(cfg)) == cfg);
    CHECK(stable_json(cfg) == to_json(cfg));
    CHECK(from_json<Cfg>(R"({"threads":1,"fast":true,"factor":2,"kind":""})").factor == 2);
    CHECK(stable_json(R"( { "b" : 1, "a" : [1.50, true] } )") == R"({"a":[1.5,true],"b":1})");
    const CfgFields fields = fields_from_json(by_rule);
    CHECK(from_json<CfgFields>(to_json(fields)) == fields);
    CHECK(to_json(FwdParams()) ==
          R"({"kv_blocksize":64,"num_stages":2,"num_warps":4,"q_blocksize":64})");
    CHECK(from_json<BwdParams>(to_json(FwdParams{{.num_warps = 8}})).num_warps == 8);
}

TEST_CASE("what is not a configuration is malformed") {
    for (const char* json : {"", "[]", "{}", R"({"threads":1,"fast":true,"factor":1.5})",
                             R"({"threads":1,"fast":true,"factor":1.5,"kind":"","more":1})",
                             R"({"threads":1.5,"fast":true,"factor":1.5,"kind":""})",
                             R"({"threads":99999999999,"fast":true,"factor":1.5,"kind":""})",
                             R"({"threads":1,"fast":1,"factor":1.5,"kind":""})",
                             R"({"threads":1,"fast":true,"factor":"x","kind":""})",
                             R"({"threads":1,"fast":true,"factor":1.5,"kind":{}})"}) {
        const auto error = error_of([&] { from_json<Cfg>(json); });
        INFO(json);
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::malformed);
    }
    CHECK(error_of([] { to_json(Cfg{.factor = std::numeric_limits<double>::infinity()}); }));
    // Replaced bytes would make two configurations one.
    CHECK(error_of([] { to_json(Cfg{.kind = "\xff"}); }));
    CHECK(error_of([] { to_json(CfgFields{{"\xc0\xaf", true}}); }));
}

TEST_CASE("the cache of configurations") {
    ConfigCache cache;
    const ConfigCache same = cache;
    CHECK_FALSE(cache.contains("key"));
    const auto before = cache.version();
    cache.put("key", Cfg{.threads = 7});
    CHECK(same.get<Cfg>("key") == Cfg{.threads = 7});
    CHECK(same.version() > before);
    CHECK_FALSE(cache.get("other"));
    for (int i = 0; i < 70'000; ++i) {
        cache.put(std::to_string(i), by_rule);
    }
    CHECK(cache.size() <= 65'536);
    CHECK(cache.contains("69999"));
    cache.clear();
    CHECK(same.size() == 0);
}

TEST_CASE("who is asked, and in which order") {
    const Stores stores;
    ConfigSelectorChain chain(ConfigCache(), stores.open(), When::first_use);
    const Choice first = chain.choose(question());
    CHECK(first.cfg == faster);
    CHECK(first.by == ChosenBy::measurement);
    CHECK(chain.choose(question()).by == ChosenBy::memory);
    ConfigSelectorChain later(ConfigCache(), stores.open());
    const Choice stored = later.choose(question());
    CHECK(stored.cfg == faster);
    CHECK(stored.by == ChosenBy::store);
    CHECK(later.choose(question()).by == ChosenBy::memory);
    const Choice unknown = later.choose(question(4096));
    CHECK(unknown.cfg == by_rule);
    CHECK(unknown.by == ChosenBy::rule);
    {
        const overlay_cache scope{{question().key, R"({ "threads": 1 })"}};
        CHECK(later.choose(question()).cfg == R"({"threads":1})");
        CHECK(later.choose(question()).by == ChosenBy::overlay);
        CHECK(later.choose(question(4096)).by == ChosenBy::rule);
        ConfigCache inner;
        inner.put(question().key, R"({"threads":2})");
        const overlay_cache nested(inner);
        CHECK(later.choose(question()).cfg == R"({"threads":2})");
        CHECK(detail::scopes_of_thread() == 2);
        std::thread([&] { CHECK(later.choose(question()).by == ChosenBy::memory); }).join();
        later.set_cfg("norm", R"({"threads":3})");
        CHECK(later.choose(question()).by == ChosenBy::argument);
        later.set_cfg("norm", std::nullopt);
    }
    CHECK(detail::scopes_of_thread() == 0);
    CHECK(later.choose(question()).by == ChosenBy::memory);
}

TEST_CASE("a rule's answer is not stored, and a changed build is a miss") {
    const Stores stores;
    ConfigSelectorChain(ConfigCache(), stores.open()).choose(question());
    CHECK(tuning::Store(stores.folder.path()).all().entries.empty());
    ConfigSelectorChain(ConfigCache(), stores.open(), When::first_use).choose(question());
    CHECK(tuning::Store(stores.folder.path()).all().entries.size() == 2);
    ConfigSelectorChain chain(ConfigCache(), stores.open());
    CHECK(chain.choose(question(128, "a newer build")).by == ChosenBy::rule);
    CHECK(ConfigSelectorChain(ConfigCache(), stores.open()).choose(question()).by ==
          ChosenBy::store);
}

TEST_CASE("a configuration that the operation does not know is a miss for itself alone") {
    const Stores stores;
    Question asked = question();
    asked.measure = [](double) {
        Measurement all = measured();
        all.candidates.push_back({R"({"threads":1000000})", 1, 1, 1, 10});
        all.best = 2;
        return all;
    };
    ConfigSelectorChain(ConfigCache(), stores.open(), When::first_use).choose(asked);
    asked.knows = [](const std::string& cfg) { return cfg == by_rule || cfg == faster; };
    const Choice choice = ConfigSelectorChain(ConfigCache(), stores.open()).choose(asked);
    CHECK(choice.by == ChosenBy::store);
    CHECK(choice.cfg == faster);
}

TEST_CASE("the half of a measurement does not count") {
    const Stores stores;
    ConfigSelectorChain(ConfigCache(), stores.open(), When::first_use).choose(question());
    const tuning::Store store(stores.folder.path());
    const auto entries = store.all().entries;
    REQUIRE(entries.size() == 2);
    for (const auto& entry : entries) {
        store.clear();
        REQUIRE(store.put(entry).empty());
        const bool rule = entry.candidate.role == tuning::Role::rule;
        CHECK(ConfigSelectorChain(ConfigCache(), stores.open()).choose(question()).by ==
              (rule ? ChosenBy::store : ChosenBy::rule));
    }
}

TEST_CASE("what another process has stored since is found after reload") {
    const Stores stores;
    ConfigSelectorChain chain(ConfigCache(), stores.open());
    CHECK(chain.choose(question()).by == ChosenBy::rule);
    ConfigSelectorChain(ConfigCache(), stores.open(), When::first_use).choose(question());
    CHECK(chain.choose(question()).by == ChosenBy::rule);  // not looked for at every call
    const auto before = chain.version();
    chain.reload();
    CHECK(chain.version() > before);
    CHECK(chain.choose(question()).by == ChosenBy::store);
}

TEST_CASE("policies") {
    int measurements = 0;
    Question asked = question();
    asked.measure = [&](double) {
        ++measurements;
        return measured();
    };
    for (const When when : {When::never, When::offline}) {
        ConfigSelectorChain chain(ConfigCache(), PersistentCache::none(), when);
        CHECK(chain.choose(asked).by == ChosenBy::rule);
        CHECK(measurements == 0);
        const policy_override scope(When::first_use);
        CHECK(chain.choose(asked).by == ChosenBy::measurement);
        CHECK(measurements == 1);
        measurements = 0;
    }
    ConfigSelectorChain chain(ConfigCache(), PersistentCache::none(), When::first_use);
    {
        const policy_override scope(When::never);
        CHECK(chain.choose(asked).by == ChosenBy::rule);
        CHECK(error_of([&] { chain.learn(asked, measured()); })->code() == ErrorCode::refused);
    }
    chain.learn(asked, measured());
    CHECK(chain.choose(asked).by == ChosenBy::memory);
    CHECK(measurements == 0);
}

TEST_CASE("a budget is for all calls together") {
    ConfigSelectorChain chain(ConfigCache(), PersistentCache::none(),
                              {When::first_use, std::chrono::milliseconds(30)});
    const auto slowly = [&](std::int64_t rows) {
        Question asked = question(rows);
        asked.measure = [](double budget_ms) {
            CHECK(budget_ms > 0);
            CHECK(budget_ms <= 30);
            std::this_thread::sleep_for(std::chrono::milliseconds(40));
            return measured();
        };
        return chain.choose(asked).by;
    };
    CHECK(slowly(1) == ChosenBy::measurement);
    CHECK(slowly(2) == ChosenBy::rule);
}

TEST_CASE("in the background the rule answers until it is measured") {
    ConfigSelectorChain chain(ConfigCache(), PersistentCache::none(), When::background);
    std::atomic<bool> may_go = false;
    std::atomic<int> measurements = 0;
    Question asked = question();
    asked.detached = [&] {
        return [&](double) {
            while (!may_go) {
                std::this_thread::yield();
            }
            ++measurements;
            return measured();
        };
    };
    for (int call = 0; call < 5; ++call) {
        const Choice choice = chain.choose(asked);
        CHECK(choice.by == ChosenBy::rule);
        CHECK(choice.provisional);
    }
    const auto before = chain.version();
    may_go = true;
    chain.wait();
    CHECK(measurements == 1);
    CHECK(chain.version() > before);
    CHECK(chain.choose(asked).by == ChosenBy::memory);
}

TEST_CASE("a thread's policy of the background has its own budget") {
    ConfigSelectorChain chain(ConfigCache(), PersistentCache::none(),
                              {When::never, std::chrono::milliseconds(0)});
    double budget = 0;
    Question asked = question();
    asked.detached = [&] {
        return [&](double budget_ms) {
            budget = budget_ms;
            return measured();
        };
    };
    const policy_override scope({When::background, std::chrono::milliseconds(5000)});
    chain.choose(asked);
    chain.wait();
    CHECK(budget > 1000);
    CHECK(budget <= 5000);
}

TEST_CASE("a measurement that throws is told, and not tried again") {
    ConfigSelectorChain chain(ConfigCache(), PersistentCache::none(), When::first_use);
    int tries = 0;
    Question asked = question();
    asked.measure = [&](double) -> Measurement {
        ++tries;
        throw std::runtime_error("no memory left");
    };
    CHECK(chain.choose(asked).by == ChosenBy::rule);
    CHECK(chain.choose(asked).by == ChosenBy::rule);
    CHECK(tries == 1);
    REQUIRE(chain.warnings().size() == 1);
    CHECK_THAT(chain.warnings()[0], ContainsSubstring("no memory left"));
}

TEST_CASE("candidates that are banned are told, and never chosen") {
    const Stores stores;
    ConfigSelectorChain chain(ConfigCache(), stores.open(), When::first_use);
    Question asked = question();
    asked.measure = [](double) {
        Measurement all = measured();
        all.candidates[1] = {faster, 0, 0, 0, 0, "wrong values"};
        all.best = 0;
        return all;
    };
    CHECK(chain.choose(asked).cfg == by_rule);
    CHECK_THAT(chain.warnings().at(0), ContainsSubstring("wrong values"));
    ConfigSelectorChain later(ConfigCache(), stores.open());
    CHECK(later.choose(question()).cfg == by_rule);
    // Measured again without the ban being known: it holds.
    later.learn(question(), measured());
    CHECK(ConfigSelectorChain(ConfigCache(), stores.open()).choose(question()).cfg == by_rule);
}

TEST_CASE("a store that fails is told, and does not fail a call") {
    const auto odd = std::make_shared<OddStore>();
    ConfigSelectorChain chain(ConfigCache(), PersistentCache(odd), When::first_use);
    CHECK(chain.choose(question()).by == ChosenBy::measurement);
    CHECK(chain.choose(question()).by == ChosenBy::memory);
    const auto warnings = chain.warnings();
    REQUIRE(warnings.size() == 2);
    CHECK_THAT(warnings[0], ContainsSubstring("damaged.json"));
    CHECK_THAT(warnings[1], ContainsSubstring("the disk is full"));
}

TEST_CASE("while another process measures, the rule answers and nobody waits") {
    const auto odd = std::make_shared<OddStore>();
    odd->holder = "process 4711";
    ConfigSelectorChain chain(ConfigCache(), PersistentCache(odd), When::first_use);
    const Choice choice = chain.choose(question());
    CHECK(choice.cfg == by_rule);
    CHECK(choice.provisional);
    CHECK_THAT(choice.note, ContainsSubstring("process 4711"));
    CHECK(chain.choose(question()).provisional);
    odd->holder.clear();
    chain.reload();
    CHECK(chain.choose(question()).by == ChosenBy::measurement);
}

TEST_CASE("parts can be replaced, left out and asked in another order") {
    ConfigSelectorChain chain(ConfigCache(), PersistentCache::none(), When::first_use);
    chain.set_part(ChosenBy::store, [](const Question&) {
        return std::optional(Choice{R"({"threads":9})", ChosenBy::store, "from a database"});
    });
    CHECK(chain.choose(question()).cfg == R"({"threads":9})");
    chain.set_order({ChosenBy::memory, ChosenBy::rule});
    CHECK(chain.choose(question()).by == ChosenBy::rule);
    CHECK(error_of([&] { chain.set_order({ChosenBy::store}); })->code() == ErrorCode::malformed);
    CHECK(error_of([&] { chain.set_order({}); })->code() == ErrorCode::malformed);
    CHECK(std::string(chosen_by_name(ChosenBy::overlay)) == "overlay");
}

TEST_CASE("many threads choose and learn at once") {
    const Stores stores;
    ConfigSelectorChain chain(ConfigCache(), stores.open(), When::first_use);
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&] {
            for (std::int64_t rows = 1; rows < 64; ++rows) {
                const Choice choice = chain.choose(question(rows));
                wrong += choice.cfg == faster || choice.provisional ? 0 : 1;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(wrong == 0);
    CHECK(chain.cache().size() == 63);
}
