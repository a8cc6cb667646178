#include "runtime/selection/selection.h"
#include "runtime/graph/format.h"

#include "base/text.h"
#include "runtime/graph/class_name.h"
#include "runtime/layers/host_attributes.h"
#include "runtime/model/program_function.h"

#include <algorithm>

namespace twinkle::runtime {

const FunctionCandidate* Choice::implementation() const {
    if (const auto* function = as<FunctionChoice>()) {
        return function->candidate;
    }
    const auto* pattern = as<PatternChoice>();
    return pattern != nullptr ? pattern->candidate : nullptr;
}

const void* Choice::id() const {
    return std::visit([](const auto& one) -> const void* { return one.candidate; }, of);
}

std::string Choice::bound_name() const {
    if (const auto* layer = as<LayerChoice>()) {
        return layer->binding->kernel_name;
    }
    const auto* pattern = as<PatternChoice>();
    return pattern != nullptr ? pattern->binding->name : as<FunctionChoice>()->binding->func_name;
}

const std::string& Choice::mode() const {
    return std::visit([](const auto& one) -> const std::string& { return one.candidate->mode; },
                      of);
}

const std::string& Choice::precision() const {
    static const std::string exact;
    const auto* layer = as<LayerChoice>();
    return layer != nullptr ? layer->candidate->precision : exact;
}

std::string Choice::cfg_text() const {
    return cfg.empty() ? "" : to_json(cfg);
}

namespace {

// " (way=2, grain=16384)"
std::string shown(const CfgFields& cfg) {
    std::vector<std::string> all;
    for (const auto& [name, value] : cfg) {
        const std::string text = to_json(CfgFields{{name, value}});
        all.push_back(name + "=" +
                      text.substr(text.find(':') + 1, text.size() - text.find(':') - 2));
    }
    return all.empty() ? "" : " (" + base::join(all, ", ") + ")";
}

}  // namespace

std::string Choice::describe() const {
    return describe_candidate() + shown(cfg);
}

std::string Choice::describe_candidate() const {
    if (const auto* layer = as<LayerChoice>()) {
        return layer->candidate->kernel + ": " + layer->candidate->layer;
    }
    const FunctionCandidate& one = *implementation();
    if (one.op.starts_with(program_namespace)) {
        return "a C++ function of this program";
    }
    const std::string name = one.op.empty() ? one.function : one.op;
    return !one.kernel.empty() ? one.kernel + ": " + name
           : one.op.empty()    ? one.file + ": " + name
                               : name;
}

bool binds(const MappedLayer& layer, const std::string& class_name) {
    return std::any_of(layer.classes.begin(), layer.classes.end(), [&](const std::string& pattern) {
        return base::glob_match(pattern, class_name);
    });
}

std::optional<std::string> unmet_condition(const MappedLayer& layer, const Instance& instance,
                                           const LostAttributes& lost) {
    if (!layer.modules.empty() &&
        std::none_of(layer.modules.begin(), layer.modules.end(), [&](const std::string& pattern) {
            return base::glob_match(pattern, instance.path);
        })) {
        return "the binding names other instances (modules)";
    }
    for (const auto& [name, expected] : layer.when) {
        const auto actual = attribute_of(instance.module, lost, name);
        if (!actual) {
            return "the saved model has lost the attribute " + name +
                   ", on which the binding depends";
        }
        if (!equals(*actual, expected)) {
            return fmt::format("its {} is not {}", name, to_text(expected));
        }
    }
    for (const auto& [name, classes] : layer.when_submodule) {
        if (!instance.module.hasattr(name) || !instance.module.attr(name).isModule()) {
            return "it has no submodule " + name + ", on which the binding depends";
        }
        const std::string type =
            unmangled(instance.module.attr(name).toModule().type()->name()->qualifiedName());
        if (std::find(classes.begin(), classes.end(), type) == classes.end()) {
            return fmt::format("its {} is {}, which this kernel does not compute", name, type);
        }
    }
    return std::nullopt;
}

}  // namespace twinkle::runtime
