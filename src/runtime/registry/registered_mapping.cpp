#include "runtime/registry/registered_mapping.h"

#include "runtime/kernels/own_place.h"
#include "runtime/kernels/own_target.h"
#include "runtime/registry/layer_shapes.h"
#include "runtime/registry/registered_kernels.h"
#include "runtime/selection/candidates.h"

#include <algorithm>

namespace twinkle::runtime {

namespace {

template <typename Kernel>
std::string name_of(const Kernel& layer) {
    if (!layer.repo_id.empty()) {
        const auto pin = project::pin_of(layer.version, layer.revision);
        return layer.repo_id + (pin.empty() ? "" : "@" + pin.text());
    }
    return layer.repo_path.empty() ? "twinkle-pack" : layer.repo_path.filename().string();
}

// A registration's candidate before its kernel is located: its flags are not known yet, and do not
// affect which one is chosen.
LayerCandidate unresolved(const LayerKernel& layer) {
    return {name_of(layer),
            layer.layer_name,
            layer.device.empty() ? "any" : layer.device,
            layer.capability,
            layer.mode,
            true,
            true};
}

FunctionCandidate unresolved(const RegisteredFunction& function) {
    const FunctionKernel& kernel = function.kernel;
    FunctionCandidate candidate;
    candidate.op = function.native.empty() ? "" : "twinkle_native::" + function.native;
    candidate.device = kernel.device.empty() ? "any" : kernel.device;
    candidate.mode = kernel.mode;
    candidate.has_backward = kernel.repo == nullptr || kernel.repo->has_backward;
    candidate.can_torch_compile = kernel.repo == nullptr || kernel.repo->can_torch_compile;
    return candidate;
}

// Whether the original may stay after this failure to get a kernel; a mistake in the registration
// itself is always an error.
bool is_failure_to_load(const Error& error) {
    return error.code() == ErrorCode::not_found || error.code() == ErrorCode::unreachable ||
           error.code() == ErrorCode::refused;
}

class MappingMaker {
public:
    MappingMaker(const Registrations& registrations, const SelectionContext& context, bool may_fail)
        : context_(context), may_fail_(may_fail), kernels_(registrations, result_.mapping) {
        result_.mapping.target = own_target().to_map();
    }

    void add(const LayerShape& shape, const std::set<std::string>& classes) {
        MappedLayer layer = shape.bound;
        for (const LayerKernel* kernel : shape.kernels) {
            layer.candidates.push_back(unresolved(*kernel));
        }
        const bool used = std::any_of(classes.begin(), classes.end(),
                                      [&](const auto& name) { return binds(layer, name); });
        if (used) {
            resolve(shape, layer);
        }
        result_.mapping.layers.push_back(std::move(layer));
        result_.conditions.push_back(shape.conditions);
    }

    // Adds all registrations for one function, those for one kind of device first.
    void add(const std::vector<const RegisteredFunction*>& registered, bool called) {
        MappedFunction function{
            registered.front()->kernel.target_module, registered.front()->kernel.func_name, {}};
        for (const RegisteredFunction* one : registered) {
            function.candidates.push_back(unresolved(*one));
        }
        const auto choice = called ? candidates_for(result_.mapping, function, context_).first()
                                   : tl::make_unexpected(KeepReason{});
        if (choice) {
            const auto index = choice->implementation() - function.candidates.data();
            auto found = candidates(*registered[static_cast<std::size_t>(index)],
                                    function.candidates[static_cast<std::size_t>(index)]);
            function.candidates.erase(function.candidates.begin() + index);
            function.candidates.insert(function.candidates.begin() + index, found.begin(),
                                       found.end());
        }
        result_.mapping.functions.push_back(std::move(function));
    }

    // Adds all registrations for one pattern. Only a search shows whether a model computes
    // it.
    void add(const std::vector<const RegisteredPattern*>& registered) {
        std::vector<const RegisteredFunction*> functions;
        for (const RegisteredPattern* one : registered) {
            functions.push_back(&one->replacement);
        }
        add(functions, true);
        MappedFunction function = std::move(result_.mapping.functions.back());
        result_.mapping.functions.pop_back();
        const RegisteredPattern& first = *registered.front();
        result_.mapping.patterns.push_back({first.name(), first.source, first.file, first.formulas,
                                            std::move(function.candidates), false});
    }

    RegisteredMapping finish() {
        result_.warnings = kernels_.warnings();
        return std::move(result_);
    }

private:
    // Locates only the registration that serves this device and mode.
    void resolve(const LayerShape& shape, MappedLayer& layer) {
        Mapping pretended;
        for (const LayerCandidate& candidate : layer.candidates) {
            MappedKernel kernel;
            kernel.name = candidate.kernel;
            kernel.device = context_.device;
            pretended.kernels.push_back(std::move(kernel));
        }
        const auto choice = candidates_for(pretended, layer, context_).first();
        if (!choice) {
            return;  // choosing again gives the site the reason
        }
        const auto index = choice->as<LayerChoice>()->candidate - layer.candidates.data();
        const auto found = candidates(*shape.kernels[static_cast<std::size_t>(index)], layer);
        if (!found.empty()) {
            layer.candidates.erase(layer.candidates.begin() + index);
            layer.candidates.insert(layer.candidates.begin() + index, found.begin(), found.end());
        }
    }

    std::vector<LayerCandidate> candidates(const LayerKernel& kernel, const MappedLayer& layer) {
        try {
            return kernels_.candidates(kernel, layer.classes, context_.mode);
        } catch (const Error& error) {
            if (!may_fail_ || !is_failure_to_load(error)) {
                throw;
            }
            note_failure(name_of(kernel), error);
            LayerCandidate candidate = unresolved(kernel);
            candidate.device = context_.device;
            return {candidate};
        }
    }

    std::vector<FunctionCandidate> candidates(const RegisteredFunction& function,
                                              FunctionCandidate candidate) {
        const FunctionKernel& kernel = function.kernel;
        try {
            if (function.native.empty()) {
                return kernels_.candidates(kernel, context_.mode);
            }
            result_.natives.emplace(candidate.op, kernel.repo != nullptr
                                                      ? kernel.repo->load()
                                                      : *kernel.func_impl.callable());
        } catch (const Error& error) {
            if (!may_fail_ || !is_failure_to_load(error)) {
                throw;
            }
            candidate.kernel = kernel.target_module + "." + kernel.func_name;
            candidate.op.clear();
            candidate.device = context_.device;
            note_failure(candidate.kernel, error);
        }
        return {candidate};
    }

    // Adds a kernel that throws this error when it is loaded.
    void note_failure(const std::string& name, const Error& error) {
        MappedKernel missing;
        missing.name = name;
        missing.device = context_.device;
        result_.mapping.kernels.push_back(missing);
        result_.failures.emplace(name, error);
    }

    const SelectionContext& context_;
    bool may_fail_;
    RegisteredMapping result_;
    RegisteredKernels kernels_;
};

std::vector<std::vector<const RegisteredFunction*>> by_function(
    const Registrations& registrations) {
    std::vector<std::vector<const RegisteredFunction*>> groups;
    for (const bool any_device : {false, true}) {
        for (const RegisteredFunction& one : registrations.functions) {
            if (one.kernel.device.empty() != any_device) {
                continue;
            }
            const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& other) {
                return other.front()->kernel.target_module == one.kernel.target_module &&
                       other.front()->kernel.func_name == one.kernel.func_name;
            });
            if (group == groups.end()) {
                groups.push_back({&one});
            } else {
                group->push_back(&one);
            }
        }
    }
    return groups;
}

// Keeps the order of registration; those for one kind of device come first.
std::vector<std::vector<const RegisteredPattern*>> by_pattern(const Registrations& registrations) {
    std::vector<std::vector<const RegisteredPattern*>> groups;
    for (const RegisteredPattern& one : registrations.patterns) {
        const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& other) {
            return other.front()->name() == one.name() && other.front()->source == one.source &&
                   other.front()->formulas == one.formulas;
        });
        if (group == groups.end()) {
            groups.push_back({&one});
        } else {
            const bool first = !one.replacement.kernel.device.empty();
            group->insert(first ? group->begin() : group->end(), &one);
        }
    }
    return groups;
}

}  // namespace

bool RegisteredMapping::admits(const MappedLayer& layer, const torch::jit::Module& instance) const {
    const auto& all = conditions.at(static_cast<std::size_t>(&layer - mapping.layers.data()));
    return std::all_of(all.begin(), all.end(),
                       [&](const InstanceCondition* holds) { return (*holds)(instance); });
}

RegisteredMapping mapping_for(const Registrations& registrations,
                              const std::set<std::string>& classes,
                              const std::set<std::string>& functions,
                              const SelectionContext& context, bool may_fail) {
    // Reads the installed files only if a kernel name comes without classes.
    const bool asked = std::any_of(registrations.layers.begin(), registrations.layers.end(),
                                   [](const auto& layer) { return layer.kernel.classes.empty(); });
    const auto presets =
        asked ? project::all_preset_layers(presets_folder()) : std::vector<project::LayerBinding>{};
    MappingMaker maker(registrations, context, may_fail);
    for (const LayerShape& shape : layer_shapes(registrations, presets)) {
        maker.add(shape, classes);
    }
    for (const auto& registered : by_function(registrations)) {
        const FunctionKernel& one = registered.front()->kernel;
        maker.add(registered, functions.contains(one.target_module + "." + one.func_name));
    }
    for (const auto& registered : by_pattern(registrations)) {
        maker.add(registered);
    }
    RegisteredMapping made = maker.finish();
    made.warnings.insert(made.warnings.begin(), registrations.notes.begin(),
                         registrations.notes.end());
    return made;
}

}  // namespace twinkle::runtime
