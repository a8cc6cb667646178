#include "twinkle/selector.h"

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace twinkle {

struct ConfigCache::State {
    mutable std::shared_mutex mutex;
    std::unordered_map<std::string, std::string> cfgs;
    std::atomic<std::uint64_t> version = 0;
};

namespace {
constexpr std::size_t most_cfgs = 65'536;
}  // namespace

ConfigCache::ConfigCache() : state_(std::make_shared<State>()) {}

void ConfigCache::put(const std::string& key, std::string cfg) {
    const std::unique_lock lock(state_->mutex);
    if (state_->cfgs.size() >= most_cfgs && !state_->cfgs.contains(key)) {
        state_->cfgs.clear();
    }
    state_->cfgs[key] = std::move(cfg);
    ++state_->version;
}

std::optional<std::string> ConfigCache::get(const std::string& key) const {
    const std::shared_lock lock(state_->mutex);
    const auto found = state_->cfgs.find(key);
    return found == state_->cfgs.end() ? std::nullopt : std::optional(found->second);
}

std::size_t ConfigCache::size() const {
    const std::shared_lock lock(state_->mutex);
    return state_->cfgs.size();
}

void ConfigCache::clear() {
    const std::unique_lock lock(state_->mutex);
    state_->cfgs.clear();
    ++state_->version;
}

std::uint64_t ConfigCache::version() const {
    return state_->version.load(std::memory_order_acquire);
}

}  // namespace twinkle
