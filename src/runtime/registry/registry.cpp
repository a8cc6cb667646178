#include "twinkle/registry.h"

#include "runtime/registry/registrations.h"

#include <mutex>

namespace twinkle {

using runtime::Registrations;

struct Registry::State {
    mutable std::mutex mutex;
    Registrations registrations;
};

namespace {

struct Scope {
    KernelMapping mapping;
    bool inherit_mapping;
};

std::vector<Scope>& scopes_of_thread() {
    thread_local std::vector<Scope> scopes;
    return scopes;
}

}  // namespace

Registry::Registry() : state_(std::make_unique<State>()) {}
Registry::~Registry() = default;

Registry& Registry::of_process() {
    static auto& registry = *new Registry();  // never destroyed: threads may outlive main
    return registry;
}

void Registry::register_layer_kernel(LayerKernel layer) {
    const std::scoped_lock lock(state_->mutex);
    ++state_->registrations.calls;
    put(state_->registrations, std::move(layer));
}

void Registry::register_function_kernel(FunctionKernel function) {
    const std::scoped_lock lock(state_->mutex);
    put(state_->registrations, std::move(function));
}

void Registry::register_pattern_kernel(PatternKernel pattern) {
    const std::scoped_lock lock(state_->mutex);
    put(state_->registrations, pattern);
}

void Registry::register_external_layer(const std::string& class_name,
                                       const std::string& kernel_name,
                                       InstanceCondition condition) {
    const std::scoped_lock lock(state_->mutex);
    ++state_->registrations.calls;
    put(state_->registrations,
        runtime::ExternalLayer{class_name, kernel_name, std::move(condition), 0});
}

void Registry::register_kernel_mapping(const KernelMapping& mapping, bool inherit_mapping) {
    const std::scoped_lock lock(state_->mutex);
    put(state_->registrations, mapping, inherit_mapping);
}

void Registry::register_kernels(const Config& config) {
    const std::scoped_lock lock(state_->mutex);
    Registrations changed = state_->registrations;
    ++changed.calls;
    for (const LayerKernel& layer : config.layers) {
        put(changed, layer);
    }
    for (const FunctionKernel& function : config.functions) {
        put(changed, function);
    }
    for (const PatternKernel& pattern : config.patterns) {
        put(changed, pattern);
    }
    changed.trust.insert(changed.trust.end(), config.trust.begin(), config.trust.end());
    changed.notes.insert(changed.notes.end(), config.notes.begin(), config.notes.end());
    state_->registrations = std::move(changed);
}

void Registry::use_lock(std::filesystem::path lockfile) {
    const std::scoped_lock lock(state_->mutex);
    state_->registrations.lock = std::move(lockfile);
}

void Registry::set_hub(HubAccess access) {
    const std::scoped_lock lock(state_->mutex);
    state_->registrations.hub = std::move(access);
}

void Registry::clear() {
    const std::scoped_lock lock(state_->mutex);
    HubAccess hub = std::move(state_->registrations.hub);
    state_->registrations = {};
    state_->registrations.hub = std::move(hub);
}

MappingScope::MappingScope(KernelMapping mapping, bool inherit_mapping) {
    Registrations unused;
    put(unused, mapping, true);  // throws what a later kernelize would
    scopes_of_thread().push_back({std::move(mapping), inherit_mapping});
}

MappingScope::~MappingScope() {
    scopes_of_thread().pop_back();
}

runtime::Registrations runtime::effective(const Registry& registry) {
    Registrations all;
    {
        const std::scoped_lock lock(registry.state().mutex);
        all = registry.state().registrations;
    }
    for (const Scope& scope : scopes_of_thread()) {
        put(all, scope.mapping, scope.inherit_mapping);
    }
    return all;
}

void register_layer_kernel(LayerKernel layer) {
    Registry::of_process().register_layer_kernel(std::move(layer));
}

void register_external_layer(const std::string& class_name, const std::string& kernel_name,
                             InstanceCondition condition) {
    Registry::of_process().register_external_layer(class_name, kernel_name, std::move(condition));
}

void register_function_kernel(FunctionKernel function) {
    Registry::of_process().register_function_kernel(std::move(function));
}

void register_pattern_kernel(PatternKernel pattern) {
    Registry::of_process().register_pattern_kernel(std::move(pattern));
}

void register_kernel_mapping(const KernelMapping& mapping, bool inherit_mapping) {
    Registry::of_process().register_kernel_mapping(mapping, inherit_mapping);
}

void register_kernels(const Config& config) {
    Registry::of_process().register_kernels(config);
}

}  // namespace twinkle
