#include "runtime/registry/registered_mapping.h"

#include "runtime/kernels/own_place.h"
#include "runtime/registry/layer_shapes.h"
#include "runtime/registry/own_target.h"
#include "runtime/registry/registered_kernels.h"

#include <algorithm>

namespace twinkle::runtime {

namespace {

std::string name_of(const LayerKernel& layer) {
    if (!layer.repo_id.empty()) {
        const auto pin = pin_of(layer.version, layer.revision);
        return layer.repo_id + (pin.empty() ? "" : "@" + pin.text());
    }
    return layer.repo_path.empty() ? "twinkle-pack" : layer.repo_path.filename().string();
}

// What a registration offers before anybody has looked for its kernel: its flags are not known yet,
// and do not matter for which one is chosen.
LayerCandidate unresolved(const LayerKernel& layer) {
    return {name_of(layer),
            layer.layer_name,
            layer.device.empty() ? "any" : layer.device,
            layer.capability,
            layer.mode,
            true,
            true};
}

// Whether a failure to get a kernel may leave the original in its place; what is wrong in itself
// may not.
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

    RegisteredMapping finish() {
        result_.warnings = kernels_.warnings();
        return std::move(result_);
    }

private:
    // Only the registration that serves this device and mode is looked for.
    void resolve(const LayerShape& shape, MappedLayer& layer) {
        Mapping pretended;
        for (const LayerCandidate& candidate : layer.candidates) {
            MappedKernel kernel;
            kernel.name = candidate.kernel;
            kernel.device = context_.device;
            pretended.kernels.push_back(std::move(kernel));
        }
        const auto choice = choose(pretended, layer, context_);
        if (!choice) {
            return;  // choosing again gives the site the reason
        }
        const auto index = choice->candidate - layer.candidates.data();
        const auto found = candidates(*shape.kernels[static_cast<std::size_t>(index)], layer);
        if (!found.empty()) {
            layer.candidates.erase(layer.candidates.begin() + index);
            layer.candidates.insert(layer.candidates.begin() + index, found.begin(), found.end());
        }
    }

    std::vector<LayerCandidate> candidates(const LayerKernel& kernel, const MappedLayer& layer) {
        try {
            return kernels_.candidates(kernel, layer.classes);
        } catch (const Error& error) {
            if (!may_fail_ || !is_failure_to_load(error)) {
                throw;
            }
            const std::string name = name_of(kernel);
            MappedKernel missing;
            missing.name = name;
            missing.device = context_.device;
            result_.mapping.kernels.push_back(missing);
            result_.failures.emplace(name, error);
            LayerCandidate candidate = unresolved(kernel);
            candidate.device = context_.device;
            return {candidate};
        }
    }

    const SelectionContext& context_;
    bool may_fail_;
    RegisteredMapping result_;
    RegisteredKernels kernels_;
};

}  // namespace

bool RegisteredMapping::admits(const MappedLayer& layer, const torch::jit::Module& instance) const {
    const auto& all = conditions.at(static_cast<std::size_t>(&layer - mapping.layers.data()));
    return std::all_of(all.begin(), all.end(),
                       [&](const InstanceCondition* holds) { return (*holds)(instance); });
}

RegisteredMapping mapping_for(const Registrations& registrations,
                              const std::set<std::string>& classes, const SelectionContext& context,
                              bool may_fail) {
    // Files of the installation, which are asked only for names that come without classes.
    const bool asked = std::any_of(registrations.layers.begin(), registrations.layers.end(),
                                   [](const LayerKernel& layer) { return layer.classes.empty(); });
    const auto presets =
        asked ? project::all_preset_layers(presets_folder()) : std::vector<project::LayerBinding>{};
    MappingMaker maker(registrations, context, may_fail);
    for (const LayerShape& shape : layer_shapes(registrations, presets)) {
        maker.add(shape, classes);
    }
    RegisteredMapping made = maker.finish();
    made.warnings.insert(made.warnings.begin(), registrations.notes.begin(),
                         registrations.notes.end());
    return made;
}

}  // namespace twinkle::runtime
