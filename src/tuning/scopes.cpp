#include "tuning/scopes.h"

namespace twinkle {

tuning::Scopes& tuning::scopes() {
    thread_local Scopes scopes;
    return scopes;
}

overlay_cache::overlay_cache(ConfigCache cache) {
    tuning::scopes().overlays.push_back(std::move(cache));
}

overlay_cache::overlay_cache(
    std::initializer_list<std::pair<std::string, std::string>> keys_and_cfgs) {
    ConfigCache cache;
    for (const auto& [key, cfg] : keys_and_cfgs) {
        cache.put(key, stable_json(cfg));
    }
    tuning::scopes().overlays.push_back(std::move(cache));
}

overlay_cache::~overlay_cache() {
    tuning::scopes().overlays.pop_back();
}

policy_override::policy_override(TuningPolicy policy) {
    tuning::scopes().policies.push_back(policy);
}

policy_override::~policy_override() {
    tuning::scopes().policies.pop_back();
}

int detail::scopes_of_thread() {
    const tuning::Scopes& scopes = tuning::scopes();
    return static_cast<int>(scopes.overlays.size() + scopes.policies.size());
}

}  // namespace twinkle
