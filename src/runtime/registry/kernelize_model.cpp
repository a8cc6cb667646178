// kernelize_model(): a registry's mapping for one model, then kernelize with it.

#include "base/text.h"
#include "runtime/kernelizer.h"
#include "runtime/registry/own_target.h"
#include "runtime/registry/registered_mapping.h"
#include "runtime/rewrite/sites.h"
#include "runtime/selection/context.h"
#include "runtime/selection/modes.h"
#include "twinkle/error.h"
#include "twinkle/registry.h"

namespace twinkle {

namespace {

[[noreturn]] void contradicted(const char* option, const std::string& mode) {
    throw Error(ErrorCode::malformed,
                {.what = std::string(option) + " contradicts the mode " + base::printable(mode),
                 .where = "",
                 .why = "",
                 .hint = "give only one of them"});
}

// needs_backward and needs_torch_compile say together what `mode` says alone.
std::optional<std::string> mode_of(const ModelOptions& options) {
    const auto& backward = options.needs_backward;
    const auto& compile = options.needs_torch_compile;
    if (options.mode) {
        std::string mode = runtime::normalized_mode(*options.mode);
        if (backward && *backward != runtime::wants_training(mode)) {
            contradicted("needs_backward", mode);
        }
        if (compile && *compile != runtime::wants_compile(mode)) {
            contradicted("needs_torch_compile", mode);
        }
        return mode;
    }
    if (!backward && !compile) {
        return std::nullopt;
    }
    return std::string(backward.value_or(false) ? "training" : "inference") +
           (compile.value_or(false) ? "+compile" : "");
}

std::set<std::string> classes_of(const torch::jit::Module& model) {
    std::set<std::string> classes;
    for (const auto& instance : runtime::instances_of(model)) {
        classes.insert(instance.class_name);
    }
    return classes;
}

}  // namespace

KernelizeOptions kernelize_options(const ModelOptions& options) {
    KernelizeOptions result;
    result.mode = mode_of(options);
    result.device = options.device;
    result.only = options.only;
    result.exclude = options.exclude;
    result.fallback = options.use_fallback.cases;
    result.strict = options.strict;
    return result;
}

Report kernelize_model(torch::jit::Module& model, const ModelOptions& options) {
    const Registry& registry =
        options.registry != nullptr ? *options.registry : Registry::of_process();
    runtime::Registrations registrations = runtime::effective(registry);
    KernelizeOptions how = kernelize_options(options);
    std::vector<std::string> warnings;
    const runtime::SelectionContext context{runtime::mode_for(model, how.mode),
                                            runtime::device_for(model, how.device, warnings),
                                            runtime::own_target().capability()};
    how.mode = context.mode;
    how.device = context.device;
    if (runtime::mapping_disabled()) {
        // Nothing is looked for then; every site is kept, and says why.
        registrations.layers.clear();
    }
    const auto registered = runtime::mapping_for(registrations, classes_of(model), context,
                                                 how.fallback.contains(Fallback::cannot_load));
    warnings.insert(warnings.end(), registered.warnings.begin(), registered.warnings.end());

    how.unfit = [&](const MappedLayer& layer, const std::string&,
                    const torch::jit::Module& instance) -> std::optional<std::string> {
        if (registered.admits(layer, instance)) {
            return std::nullopt;
        }
        return "the condition of its registration does not hold";
    };
    const auto provide = [&](const MappedKernel& kernel) {
        if (const auto failure = registered.failures.find(kernel.name);
            failure != registered.failures.end() && kernel.files.empty()) {
            throw failure->second;
        }
        return runtime::load_kernel(kernel);
    };
    Report report = runtime::Kernelizer(model, registered.mapping, how, provide).run();
    report.warnings.insert(report.warnings.begin(), warnings.begin(), warnings.end());
    return report;
}

}  // namespace twinkle
