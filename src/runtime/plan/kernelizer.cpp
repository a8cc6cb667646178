#include "runtime/plan/kernelizer.h"
#include "runtime/graph/format.h"

#include "base/text.h"
#include "runtime/convert/portability.h"
#include "runtime/graph/forward_methods.h"
#include "runtime/graph/kernel_method.h"
#include "runtime/graph/past_runs.h"
#include "runtime/kernels/own_system.h"
#include "runtime/layers/host_attributes.h"
#include "runtime/layers/replacement.h"
#include "runtime/model/marker.h"
#include "runtime/model/model_lock.h"
#include "runtime/model/program_function.h"
#include "runtime/selection/binding_typos.h"
#include "runtime/selection/context.h"
#include "runtime/selection/modes.h"
#include "twinkle/error.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace twinkle::runtime {

namespace {

bool matches_any(const std::vector<std::string>& patterns, const std::string& path) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const std::string& pattern) { return base::glob_match(pattern, path); });
}

std::optional<int> capability_of(const Mapping& mapping) {
    const auto arch = mapping.target.find("arch");
    int major = 0;
    int minor = 0;
    if (arch == mapping.target.end() ||
        std::sscanf(arch->second.c_str(), "%d.%d", &major, &minor) != 2) {
        return std::nullopt;
    }
    return major * 10 + minor;
}

std::string describe(const Choice& choice) {
    if (choice.layer != nullptr) {
        return choice.kernel->name + ": " + choice.candidate->layer;
    }
    const FunctionCandidate& one = *choice.implementation;
    if (one.op.starts_with(program_namespace)) {
        return "a C++ function of this program";
    }
    const std::string name = one.op.empty() ? one.function : one.op;
    return choice.kernel != nullptr ? choice.kernel->name + ": " + name
           : one.op.empty()         ? one.file + ": " + name
                                    : name;
}

}  // namespace

bool mapping_disabled() {
    const char* value = std::getenv("DISABLE_KERNEL_MAPPING");
    return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

Kernelizer::Kernelizer(torch::jit::Module& model, const Mapping& mapping,
                       const KernelizeOptions& options, KernelProvider provider)
    : model_(model), mapping_(mapping), options_(options), provider_(std::move(provider)) {}

Report Kernelizer::examine() {
    determine_context();
    find_sites();
    set_classes_apart();
    refuse_forbidden_outside();
    replace_sites();
    for (Site& site : sites_) {
        refuse_forbidden(site);
        if (!site.absorbed) {
            report_.sites.push_back(site.report);
        }
    }
    return report_;
}

Report Kernelizer::run() {
    const ModelLock lock(model_);
    make_portable(model_, options_, report_);
    Report report = examine();
    if (options_.strict) {
        refuse_kept();
    }
    mark_used_kernels(report);
    if (report.count(SiteStatus::replaced) != 0) {
        forget_runs(model_);
    }
    return report;
}

void Kernelizer::determine_context() {
    if (options_.load_kernels) {
        require_own_system(mapping_);
    }
    context_.mode = mode_for(model_, options_.mode);
    context_.device = device_for(model_, options_.device, report_.warnings);
    const auto named = options_.load_kernels ? named_capability(options_.device) : std::nullopt;
    context_.capability = named ? named : capability_of(mapping_);
    report_.mode = context_.mode;
    report_.device = context_.device;
    report_other_machine();
}

void Kernelizer::find_sites() {
    const auto instances = instances_of(model_);
    for (const Instance& instance : instances) {
        std::vector<const MappedLayer*> bindings;
        for (const MappedLayer& layer : mapping_.layers) {
            if (binds(layer, instance.class_name)) {
                bindings.push_back(&layer);
            }
        }
        if (bindings.empty()) {
            continue;
        }
        Site site{instance, {}, std::nullopt};
        site.report.site = instance.path;
        site.report.kind = "layer";
        site.report.of = instance.class_name;
        select(site, bindings);
        sites_.push_back(std::move(site));
    }
    report_unbound(instances);
    find_calls();
    find_patterns();
    for (std::string& doubt : doubtful_conditions(mapping_, instances)) {
        report_.warnings.push_back(std::move(doubt));
    }
    report_unmatched("only", options_.only);
    report_unmatched("exclude", options_.exclude);
    for (Site& site : sites_) {  // layers come first
        if (!site.is_call || !site.place.empty()) {
            holders_[site.instance.path].push_back(&site);
        }
    }
}

// What the options or the past say of a site before any binding does.
bool Kernelizer::is_left_out(Site& site) {
    if (mapping_disabled()) {
        keep(site, {std::nullopt, "DISABLE_KERNEL_MAPPING is set"});
    } else if (!options_.only.empty() && !matches_any(options_.only, site.report.site)) {
        keep(site, {std::nullopt, "not among the sites asked for (only)"});
        site.left_out = true;
    } else if (matches_any(options_.exclude, site.report.site)) {
        keep(site, {std::nullopt, "excluded"});
        site.left_out = true;
    } else {
        return false;
    }
    return true;
}

void Kernelizer::select(Site& site, const std::vector<const MappedLayer*>& bindings) {
    if (is_left_out(site)) {
        return;
    }
    if (is_kernelized(site.instance.module)) {
        return keep(site, {std::nullopt, "it is kernelized already"});
    }
    KeepReason reason;
    for (const MappedLayer* layer : bindings) {
        if (const auto unmet = unmet_condition(*layer, site.instance)) {
            reason = {std::nullopt, *unmet};
            continue;
        }
        if (options_.unfit) {
            if (auto unfit = options_.unfit(*layer, site.instance.path, site.instance.module)) {
                reason = {std::nullopt, std::move(*unfit)};
                continue;
            }
        }
        auto choice = choose(mapping_, *layer, context_);
        if (choice) {
            site.choice = *choice;
            return;
        }
        reason = choice.error();
    }
    keep(site, reason);
}

void Kernelizer::keep(Site& site, const KeepReason& reason) {
    if (reason.fallback && !options_.fallback.contains(*reason.fallback)) {
        site.forbidden = reason.fallback;
    }
    site.choice.reset();
    site.report.status = SiteStatus::kept;
    site.report.because = reason.because;
}

void Kernelizer::enter(Site& site, const tl::expected<void, KeepReason>& result) {
    const Choice& choice = *site.choice;
    site.report.kernel = describe(choice);
    site.report.variant = choice.kernel != nullptr ? choice.kernel->variant : "";
    if (!result) {
        keep(site, result.error());
        return refuse_forbidden(site);
    }
    site.report.status = SiteStatus::replaced;
    const auto& [name, mode] =
        choice.layer != nullptr ? std::pair(choice.layer->kernel_name, choice.candidate->mode)
                                : std::pair(choice.pattern != nullptr ? choice.pattern->name
                                                                      : choice.function->func_name,
                                            choice.implementation->mode);
    site.report.because = fmt::format("{}, {} on {}", name, mode, context_.device);
}

tl::expected<void, KeepReason> Kernelizer::replace_class(const Site& site) {
    const Choice& choice = *site.choice;
    const auto compilation = loaded(choice, site.instance.module);
    if (!compilation) {
        return tl::make_unexpected(compilation.error());
    }
    if (options_.observer) {
        options_.observer("compile", site.report.of);
    }
    auto passed = passed_inputs(site.instance.module);
    auto host = supplied_attributes(site.instance.module, choice.layer->attributes, passed);
    if (!host) {
        return tl::make_unexpected(KeepReason{Fallback::cannot_compile, host.error()});
    }
    const ReplacementRequest request{choice.candidate->layer, std::move(*host), std::move(passed),
                                     operator_use()};
    return replace_forward(site.instance.module.type(), **compilation, request);
}

std::map<std::string, PassedInputs> Kernelizer::passed_inputs(const torch::jit::Module& instance) {
    if (!passed_) {
        passed_.emplace(model_);
    }
    std::map<std::string, PassedInputs> inputs;
    for (const torch::jit::Function* method : forward_methods(instance.type())) {
        inputs[method->name()] = passed_->of(instance, method->name());
    }
    return inputs;
}

}  // namespace twinkle::runtime
