// kernelize_model(): a registry's mapping for one model, then kernelize with it.

#include "base/document.h"
#include "base/text.h"
#include "runtime/graph/function_calls.h"
#include "runtime/graph/sites.h"
#include "runtime/kernels/declared_operators.h"
#include "runtime/kernels/own_target.h"
#include "runtime/plan/run.h"
#include "runtime/registry/pending.h"
#include "runtime/registry/registered_mapping.h"
#include "runtime/selection/context.h"
#include "runtime/selection/modes.h"
#include "runtime/trace/traced_calls.h"
#include "twinkle/error.h"
#include "twinkle/registry.h"

#include <mutex>

namespace twinkle {

namespace {

[[noreturn]] void contradicted(const char* option, const std::string& mode) {
    throw Error(ErrorCode::malformed,
                {.what = std::string(option) + " contradicts the mode " + base::printable(mode),
                 .where = "",
                 .why = "",
                 .hint = "give only one of them"});
}

// needs_backward and needs_torch_compile together are the older form of `mode`.
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

struct Pending {
    std::mutex mutex;
    std::optional<std::pair<runtime::Registrations, ModelOptions>> what;
};

Pending& of_process() {
    static auto& pending = *new Pending();
    return pending;
}

// The functions that its code calls, and the registered ones that a trace has inlined.
std::set<std::string> functions_of(const torch::jit::Module& model,
                                   const runtime::Registrations& registrations) {
    std::set<std::string> functions;
    for (const auto& call : runtime::function_calls(model)) {
        functions.insert(call.function);
    }
    std::vector<runtime::TracedFunction> registered;
    for (const runtime::RegisteredFunction& one : registrations.functions) {
        registered.push_back({one.kernel.target_module, one.kernel.func_name});
    }
    if (!registered.empty()) {
        const std::set<std::size_t> inlined = runtime::TracedCalls(registered).in(model);
        for (const std::size_t function : inlined) {
            functions.insert(registered[function].full_name());
        }
    }
    return functions;
}

runtime::Registrations registered_in(const Registry* registry) {
    return runtime::effective(registry != nullptr ? *registry : Registry::of_process());
}

// `alone`: nothing else is replaced in the model, so that an empty report gets a warning.
Report kernelize_by(runtime::Registrations registrations, torch::jit::Module& model,
                    const ModelOptions& options, bool alone) {
    KernelizeOptions how = kernelize_options(options);
    std::vector<std::string> warnings;
    const auto named = runtime::named_capability(how.device);
    const runtime::SelectionContext context{runtime::mode_for(model, how.mode),
                                            runtime::device_for(model, how.device, warnings),
                                            named ? named : runtime::own_target().capability()};
    how.mode = context.mode;
    how.device = how.device ? how.device : context.device;
    if (runtime::mapping_disabled()) {
        // Looks for nothing; every site is kept, and says why.
        registrations.layers.clear();
        registrations.functions.clear();
        registrations.patterns.clear();
    }
    const auto registered =
        runtime::mapping_for(registrations, classes_of(model), functions_of(model, registrations),
                             context, how.fallback.contains(Fallback::cannot_load));
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
        return how.load_kernels ? runtime::load_kernel(kernel) : runtime::declare_kernel(kernel);
    };
    Report report = runtime::run({model, registered.mapping, how, provide, registered.natives});
    if (alone) {
        runtime::report_nothing_replaced(report, registered.mapping);
    }
    report.warnings.insert(report.warnings.begin(), warnings.begin(), warnings.end());
    return report;
}

// Keeps the registrations that the options name. Strict: there must be one.
void keep_asked(std::vector<runtime::RegisteredFunction>& functions,
                const FunctionOptions& options) {
    std::vector<std::string> modules;
    std::vector<std::string> names;
    for (const runtime::RegisteredFunction& one : functions) {
        modules.push_back(one.kernel.target_module);
        names.push_back(one.kernel.func_name);
    }
    std::erase_if(functions, [&](const runtime::RegisteredFunction& one) {
        const auto other = [](const std::string& asked, const std::string& name) {
            return !asked.empty() && asked != name;
        };
        return other(options.target_module, one.kernel.target_module) ||
               other(options.func_name, one.kernel.func_name);
    });
    const bool asked = !options.target_module.empty() || !options.func_name.empty();
    if (options.strict && asked && functions.empty()) {
        const auto suggestion = [](const std::string& asked_for,
                                   const std::vector<std::string>& known) {
            return asked_for.empty() ? std::string() : base::suggestion(asked_for, known);
        };
        const std::string module = suggestion(options.target_module, modules);
        throw Error(
            ErrorCode::refused,
            {.what = "no function kernel is registered for what was asked for",
             .where = options.target_module +
                      (options.func_name.empty() || options.target_module.empty() ? "" : ".") +
                      options.func_name,
             .why = "strict is set, and nothing would be replaced",
             .hint = module.empty() ? suggestion(options.func_name, names) : module});
    }
}

}  // namespace

KernelizeOptions kernelize_options(const ModelOptions& options) {
    KernelizeOptions result;
    result.mode = mode_of(options);
    result.device = options.device;
    result.dtype = options.dtype;
    result.load_kernels = options.load_kernels;
    result.only = options.only;
    result.exclude = options.exclude;
    result.fallback = options.use_fallback.cases;
    result.strict = options.strict;
    result.inputs = options.inputs;
    return result;
}

Report kernelize_model(torch::jit::Module& model, const ModelOptions& options) {
    return kernelize_by(registered_in(options.registry), model, options, true);
}

std::vector<std::string> apply_function_kernel(torch::jit::Module& model,
                                               const FunctionOptions& options) {
    runtime::Registrations registrations = registered_in(options.registry);
    registrations.layers.clear();
    registrations.external.clear();
    registrations.patterns.clear();
    keep_asked(registrations.functions, options);
    ModelOptions how;
    how.mode = options.mode;
    how.device = options.device;
    how.use_fallback = options.use_fallback;
    how.strict = options.strict;
    how.inputs = options.inputs;
    const Report report = kernelize_by(std::move(registrations), model, how, true);
    std::set<std::string> replaced;
    for (const SiteReport& site : report.sites) {
        if (site.status == SiteStatus::replaced) {
            replaced.insert(site.of);
        }
    }
    return {replaced.begin(), replaced.end()};
}

Report kernelize_model(std::nullopt_t, const ModelOptions& options) {
    runtime::Registrations registrations = registered_in(options.registry);
    registrations.layers.clear();
    registrations.external.clear();
    registrations.patterns.clear();
    Report report;
    report.mode = mode_of(options).value_or("");
    report.device = options.device.value_or("");
    Pending& pending = of_process();
    const std::scoped_lock lock(pending.mutex);
    if (registrations.functions.empty()) {
        report.warnings.emplace_back("no function is registered: later models stay as they are");
        pending.what.reset();
        return report;
    }
    ModelOptions later = options;
    later.registry = nullptr;
    pending.what = {std::move(registrations), std::move(later)};
    return report;
}

std::optional<Report> runtime::apply_pending(torch::jit::Module& model) {
    std::optional<std::pair<Registrations, ModelOptions>> what;
    {
        Pending& pending = of_process();
        const std::scoped_lock lock(pending.mutex);
        what = pending.what;
    }
    if (!what) {
        return std::nullopt;
    }
    return kernelize_by(std::move(what->first), model, what->second, false);
}

void detail::require_arguments(std::size_t given, std::size_t wanted) {
    if (given != wanted) {
        throw Error(ErrorCode::malformed,
                    {.what = "a C++ function takes " + std::to_string(wanted) + " arguments, not " +
                             std::to_string(given),
                     .where = "",
                     .why = "",
                     .hint = ""});
    }
}

}  // namespace twinkle
