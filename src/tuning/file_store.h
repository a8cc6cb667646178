#pragma once
// The store of measurements as the store of a selector.

#include <functional>
#include <map>
#include <mutex>

#include "tuning/store.h"
#include "twinkle/selector.h"

namespace twinkle::tuning {

// Returns entries, whose order decides between ties: the rule's first.
std::vector<Entry> entries_of(const Environment& environment, const Invocation& invocation,
                              const std::string& build, const Measurement& measurement);
// Measurement::best.
std::size_t best_of(const Measurement& measurement, const std::string& build);

class FileStore final : public ConfigStore {
public:
    FileStore(Store store, const target::Machine& machine, std::function<ProcessFacts()> process)
        : store_(std::move(store)), machine_(machine), process_(std::move(process)) {}

    Found find(const Invocation& invocation, const std::string& build,
               const std::function<bool(const std::string& cfg)>& knows) override;
    std::string keep(const Invocation& invocation, const std::string& build,
                     const Measurement& measurement) override;
    Turn take_turn(const Invocation& invocation, std::chrono::seconds duration) override;

    // Asked of the machine once for each device and number of threads.
    Environment environment(const std::string& device);

private:
    Store store_;
    const target::Machine& machine_;
    std::function<ProcessFacts()> process_;
    std::mutex mutex_;
    std::map<std::pair<std::string, int>, Environment> environments_;
};

}  // namespace twinkle::tuning
