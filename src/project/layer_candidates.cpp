#include "project/layer_candidates.h"
#include "project/modes.h"

#include <algorithm>

#include "base/document.h"
#include "base/text.h"
#include "kernel/verdict.h"
#include "twinkle/error.h"

namespace twinkle::project {
namespace {

using kernel::LayerSource;

// A binding for a range of capabilities fits no other device.
bool has_capabilities(std::string_view device) {
    return device == "cuda" || device == "rocm";
}

std::string problems_text(const std::vector<kernel::Problem>& problems) {
    std::vector<std::string> lines;
    for (const kernel::Problem& problem : problems) {
        lines.push_back(problem.message());
    }
    return base::join(lines, "\n         ");
}

// The layer of this name in a package, valid; or the error that says what there is instead.
const LayerSource& find_layer(const ChosenBuild& build, const LayerBinding& binding) {
    const LayerSource* layer = build.layers.find(binding.layer_name);
    if (layer == nullptr) {
        std::vector<std::string> names;
        for (const LayerSource& other : build.layers.layers) {
            names.push_back(other.name);
        }
        const std::string problems = problems_text(build.layers.problems);
        throw Error(ErrorCode::not_found,
                    {.what = "no layer \"" + base::printable(binding.layer_name) + "\" in " +
                             build.kernel.name,
                     .where = binding.where,
                     .why = !problems.empty() ? build.package + ": " + problems
                            : names.empty()   ? "it has no layers"
                                              : "its layers: " + base::join(names, ", "),
                     .hint = base::suggestion(binding.layer_name, names)});
    }
    if (!layer->problems.empty()) {
        throw Error(ErrorCode::refused, {.what = "the layer \"" + layer->name + "\" of " +
                                                 build.kernel.name + " breaks the rules of a layer",
                                         .where = build.package,
                                         .why = problems_text(layer->problems),
                                         .hint = ""});
    }
    return *layer;
}

void check_flags(const LayerSource& layer, const ChosenBuild& build, const LayerBinding& binding,
                 const std::string& asked) {
    const char* flag =
        excluding_flag(binding.mode, asked, layer.has_backward, layer.can_torch_compile);
    if (flag != nullptr) {
        throw Error(ErrorCode::malformed,
                    {.what = "the layer \"" + layer.name + "\" of " + build.kernel.name +
                             " is bound for " + binding.mode + ", which it excludes",
                     .where = binding.where,
                     .why = std::string(flag) + " is false at " + build.package + "/" + layer.file +
                            ":" + std::to_string(layer.line),
                     .hint = "bind it for another mode"});
    }
}

// Whether it can be used at all, by the same judgement as `twinkle inspect` shows. What may be
// decided by a model's types stays a candidate; the runtime says of each site what came of it.
void note_verdict(const LayerSource& layer, const ChosenBuild& build, const LayerBinding& binding,
                  bool strict, std::vector<std::string>& doubts) {
    const kernel::Verdict verdict = kernel::judge(layer, build.python_needs);
    if (verdict.usable != kernel::Usability::needs_python) {
        return;
    }
    const std::string text = kernel::verdict_text(verdict);
    if (strict) {
        throw Error(ErrorCode::refused,
                    {.what = "the layer \"" + layer.name + "\" of " + build.kernel.name +
                             " cannot be used without Python",
                     .where = binding.where,
                     .why = text,
                     .hint = "leave --strict out to go on without it"});
    }
    const std::string doubt = build.kernel.name + ": " + layer.name + " " + text;
    if (std::find(doubts.begin(), doubts.end(), doubt) == doubts.end()) {
        doubts.push_back(doubt);
    }
}

class LayerAdder {
public:
    LayerAdder(const LayerRules& rules, KernelLocator& locator, BuildChooser& chooser,
               Mapping& mapping)
        : rules_(rules), locator_(locator), chooser_(chooser), mapping_(mapping) {}

    void add(const LayerBinding& binding) {
        Decision decision{"layer " + binding.kernel_name, std::nullopt, "", {}};
        doubts_.clear();
        const auto devices = wanted_devices(binding, decision);
        std::vector<LayerCandidate> candidates;
        if (!devices.empty()) {
            candidates = find_candidates(binding, devices, decision);
        }
        if (candidates.empty() && rules_.strict && !may_be_missing(binding)) {
            throw Error(ErrorCode::not_found,
                        {.what = "the layer \"" + binding.kernel_name +
                                 "\" has no kernel on the target (" + rules_.target.text() + ")",
                         .where = binding.where,
                         .why = rejections_text(decision),
                         .hint = "leave --strict out to go on without it"});
        }
        if (decision.chosen) {
            decision.because = "bound in " + file_of_place(binding.where);
            for (const std::string& doubt : doubts_) {
                decision.because += "; " + doubt + ", so that the original stays";
            }
        } else {
            decision.because = "nothing fits the target: " + rejections_text(decision);
        }
        mapping_.decisions.push_back(std::move(decision));
        for (MappedLayer& layer : shapes(binding)) {
            merge(std::move(layer), candidates);
        }
    }

private:
    // A preset has bindings for devices that a target, or the bundled kernels, may not have.
    static bool may_be_missing(const LayerBinding& binding) {
        return binding.preset && !binding.device.empty();
    }

    // The devices of the binding that the target has, inside its range of capabilities.
    std::vector<std::string> wanted_devices(const LayerBinding& binding, Decision& decision) {
        const auto there = rules_.target.devices();
        std::vector<std::string> asked = there;
        if (!binding.device.empty()) {
            asked = {binding.device};
        }
        std::vector<std::string> devices;
        for (const std::string& device : asked) {
            if (std::find(there.begin(), there.end(), device) == there.end()) {
                decision.rejected.push_back({device, "the target has no such device"});
            } else if (binding.capability && !has_capabilities(device)) {
                decision.rejected.push_back({device, "its binding is for a range of capabilities"});
            } else if (binding.capability && !contains(*binding.capability)) {
                decision.rejected.push_back({device, "the GPU of the target is outside the range"});
            } else {
                devices.push_back(device);
            }
        }
        return devices;
    }

    // A GPU that is not known may be inside; the runtime looks at the one that is there.
    bool contains(std::pair<int, int> range) const {
        const auto capability = rules_.target.capability();
        return !capability || (*capability >= range.first && *capability <= range.second);
    }

    std::vector<LayerCandidate> find_candidates(const LayerBinding& binding,
                                                const std::vector<std::string>& devices,
                                                Decision& decision) {
        std::vector<LayerCandidate> candidates;
        const auto take = [&](const std::string& device, const ChosenBuild& build) {
            const std::string& name = build.kernel.name;
            const LayerSource& layer = binding.package_file.empty() ? find_layer(build, binding)
                                                                    : build.layers.layers.front();
            check_flags(layer, build, binding, rules_.mode);
            note_verdict(layer, build, binding, rules_.strict, doubts_);
            candidates.push_back({name, layer.name, device, binding.capability, binding.mode,
                                  layer.has_backward, layer.can_torch_compile, layer.precision});
            add_chosen(decision, name + ": " + layer.name, device, binding.mode);
        };
        if (!binding.package_file.empty()) {
            if (const auto* build =
                    chooser_.choose_package(binding, devices, binding.where, decision)) {
                take(build->kernel.device, *build);
            }
            return candidates;
        }
        const KernelSource source = locator_.locate(binding);
        if (may_be_missing(binding) && chooser_.choose(source, binding.device) == nullptr) {
            decision.rejected.push_back({binding.device, "no build of " + source.name + " for it"});
            return candidates;
        }
        chooser_.choose_each(source, devices, binding.device, binding.where, rules_.strict,
                             decision, take);
        return candidates;
    }

    // A binding without classes takes the place of the preset's bindings of its name.
    std::vector<MappedLayer> shapes(const LayerBinding& binding) {
        if (!binding.classes.empty()) {
            return {shape(binding, binding)};
        }
        if (!presets_) {
            presets_ = all_preset_layers(rules_.presets);
        }
        std::vector<MappedLayer> result;
        std::vector<std::string> names;
        for (const LayerBinding& preset : *presets_) {
            names.push_back(preset.kernel_name);
            if (preset.kernel_name == binding.kernel_name && !preset.classes.empty()) {
                result.push_back(shape(binding, preset));
            }
        }
        if (result.empty()) {
            const std::string near = base::suggestion(binding.kernel_name, names);
            throw Error(ErrorCode::malformed,
                        {.what = "the layer \"" + base::printable(binding.kernel_name) +
                                 "\" has no classes, and no preset has any for this name",
                         .where = binding.where,
                         .why = "names in presets: " + base::join(names, ", "),
                         .hint = near.empty() ? "add classes = [\"package.module.Class\"]" : near});
        }
        return result;
    }

    static MappedLayer shape(const LayerBinding& binding, const LayerBinding& classes_from) {
        MappedLayer layer;
        layer.kernel_name = binding.kernel_name;
        layer.classes = classes_from.classes;
        layer.modules = binding.modules;
        layer.when = binding.when.empty() ? classes_from.when : binding.when;
        layer.when_submodule =
            binding.when_submodule.empty() ? classes_from.when_submodule : binding.when_submodule;
        layer.attributes =
            binding.attributes.empty() ? classes_from.attributes : binding.attributes;
        layer.preset = binding.preset;
        return layer;
    }

    void merge(MappedLayer layer, const std::vector<LayerCandidate>& candidates) {
        const auto same = [&](const MappedLayer& other) {
            return other.kernel_name == layer.kernel_name && other.classes == layer.classes &&
                   other.modules == layer.modules && other.when == layer.when &&
                   other.when_submodule == layer.when_submodule &&
                   other.attributes == layer.attributes;
        };
        auto found = std::find_if(mapping_.layers.begin(), mapping_.layers.end(), same);
        if (found == mapping_.layers.end()) {
            found = mapping_.layers.insert(mapping_.layers.end(), std::move(layer));
        }
        found->candidates.insert(found->candidates.end(), candidates.begin(), candidates.end());
    }

    const LayerRules& rules_;
    KernelLocator& locator_;
    BuildChooser& chooser_;
    Mapping& mapping_;
    std::optional<std::vector<LayerBinding>> presets_;
    std::vector<std::string> doubts_;  // of the binding that is being added
};

}  // namespace

void add_layers(const Manifest& manifest, const LayerRules& rules, KernelLocator& locator,
                BuildChooser& chooser, Mapping& mapping) {
    LayerAdder adder(rules, locator, chooser, mapping);
    for (const LayerBinding& binding : manifest.layers) {
        adder.add(binding);
    }
}

}  // namespace twinkle::project
