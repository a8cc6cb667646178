#pragma once
// An operation with configurations, of which one is fast and some are wrong, and an executor that
// keeps nothing on disk.

#include "twinkle/tuning.h"
#include "twinkle/twinkle.h"

#include "api/package.h"

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace twinkle::tests {

using When = TuningPolicy::When;

struct Cfg {
    int work = 1;  // more is slower
    bool wrong = false;
    bool throws = false;
    template <class Self, class Visit>
    static void fields(Self& self, Visit&& visit) {
        visit("work", self.work);
        visit("wrong", self.wrong);
        visit("throws", self.throws);
    }
    bool operator==(const Cfg&) const = default;
};

// x * factor, and what a call has seen.
struct Scale : Operation<Cfg> {
    std::string name() const override { return "tests::scale"; }
    std::string build() const override { return version; }
    Cfg heuristic_cfg(const Invocation&) const override { return {.work = 40}; }
    std::vector<Cfg> config_space(const Invocation& invocation) const override {
        seen = invocation;
        return {{.work = 40}, {.work = 1}, {.work = 1, .wrong = true}, {.work = 1, .throws = true}};
    }
    at::Tensor run(const at::Tensor& x, double factor, const Cfg& cfg) const {
        ++calls;
        last = cfg;
        if (cfg.throws) {
            throw std::runtime_error("this configuration does not work");
        }
        at::Tensor y = x;
        for (int i = 0; i < cfg.work * 20; ++i) {
            y = x * factor;
        }
        return cfg.wrong ? y + 1 : y;
    }
    std::string version = "1";
    mutable std::atomic<int> calls = 0;
    mutable Cfg last;
    mutable Invocation seen;

    Scale() = default;
    Scale(const Scale& other) : Operation(other), version(other.version) {}
};

inline Executor in_memory(TuningPolicy policy = When::offline) {
    return Executor(ConfigSelectorChain(ConfigCache(), PersistentCache::none(), policy));
}

}  // namespace twinkle::tests
