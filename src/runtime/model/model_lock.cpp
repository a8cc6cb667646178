#include "runtime/model/model_lock.h"

#include <map>
#include <set>

namespace twinkle::runtime {

namespace {

// A mutex lives as long as somebody holds it or waits for it.
std::shared_ptr<std::recursive_mutex> mutex_of(const void* unit) {
    static std::mutex guard;
    static auto& known = *new std::map<const void*, std::weak_ptr<std::recursive_mutex>>();
    const std::scoped_lock lock(guard);
    std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
    auto mutex = known[unit].lock();
    if (!mutex) {
        mutex = std::make_shared<std::recursive_mutex>();
        known[unit] = mutex;
    }
    return mutex;
}

}  // namespace

ModelLock::ModelLock(const torch::jit::Module& model) {
    std::set<const void*> units;  // in one order everywhere, so that no two wait for each other
    for (const torch::jit::Module& module : model.modules()) {
        units.insert(module.type()->compilation_unit().get());
    }
    for (const void* unit : units) {
        mutexes_.push_back(mutex_of(unit));
        locks_.emplace_back(*mutexes_.back());
    }
}

}  // namespace twinkle::runtime
