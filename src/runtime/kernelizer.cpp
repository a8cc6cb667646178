#include "runtime/kernelizer.h"
#include "runtime/format.h"

#include "base/text.h"
#include "runtime/convert/portability.h"
#include "runtime/model/model_lock.h"
#include "runtime/rewrite/forward_methods.h"
#include "runtime/rewrite/host_attributes.h"
#include "runtime/rewrite/marker.h"
#include "runtime/rewrite/past_runs.h"
#include "runtime/rewrite/replacement.h"
#include "runtime/selection/binding_typos.h"
#include "runtime/selection/context.h"
#include "runtime/selection/modes.h"
#include "twinkle/error.h"

#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

namespace twinkle::runtime {

namespace {

bool matches_any(const std::vector<std::string>& patterns, const std::string& path) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const std::string& pattern) { return base::glob_match(pattern, path); });
}

std::string last_part(const std::string& name) {
    return name.substr(name.rfind('.') + 1);
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
    mark_used_kernels();
    const bool rewritten = report.device_constants.rewritten + report.dtype_constants.rewritten +
                               report.dtype_constants.converted >
                           0;
    if (report.count(SiteStatus::replaced) != 0) {
        forget_runs(model_);
    } else if (!rewritten) {
        report.warnings.emplace_back("nothing was replaced: the model is what it was");
    }
    return report;
}

void Kernelizer::determine_context() {
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

void Kernelizer::report_unmatched(const std::string& option,
                                  const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) {
        const bool matched = std::any_of(sites_.begin(), sites_.end(), [&](const Site& site) {
            return base::glob_match(pattern, site.report.site);
        });
        if (!matched) {
            report_.warnings.push_back(
                fmt::format("no site matches {} '{}'", option, base::printable(pattern)));
        }
    }
}

// Of what was asked for by name.
void Kernelizer::report_nowhere(std::string text) {
    if (options_.strict && !mapping_disabled()) {
        throw Error(ErrorCode::refused, {.what = std::move(text),
                                         .where = "",
                                         .why = "",
                                         .hint = "leave out strict to go on without it"});
    }
    report_.warnings.push_back(std::move(text));
}

// A mapping may well be for another machine; but then it is said.
void Kernelizer::report_other_machine() {
    const auto torch = mapping_.target.find("torch");
    const std::string here = fmt::format("{}.{}", TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR);
    if (torch != mapping_.target.end() && torch->second != here) {
        report_.warnings.push_back(
            options_.load_kernels ? fmt::format("the mapping was made for LibTorch {}, this is {}",
                                                torch->second, here)
                                  : fmt::format("the model is for LibTorch {} and written by {}",
                                                torch->second, here));
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

void Kernelizer::refuse_forbidden(const Site& site) const {
    if (site.forbidden && !site.absorbed) {
        throw Error(
            ErrorCode::refused,
            {.what = fmt::format("{} cannot be replaced, and the fallback {} is not allowed",
                                 site.report.of, fallback_name(*site.forbidden)),
             .where = site.report.site,
             .why = site.report.because,
             .hint = "allow the fallback, or exclude the site"});
    }
}

// Strict: whoever excludes a site wants it kept.
void Kernelizer::refuse_kept() const {
    for (const Site& site : sites_) {
        if (site.report.status == SiteStatus::kept && !site.absorbed && !site.left_out) {
            throw Error(ErrorCode::refused,
                        {.what = site.report.of + " was not replaced",
                         .where = site.report.site,
                         .why = site.report.because,
                         .hint = "leave out strict to keep its original, or exclude the site"});
        }
    }
}

// What may become part of something that is replaced is no site then, and judged later.
void Kernelizer::refuse_forbidden_outside() {
    const bool any = std::any_of(sites_.begin(), sites_.end(),
                                 [](const Site& site) { return site.choice.has_value(); });
    for (const Site& site : sites_) {
        const auto is_chosen = [](const Site& holder) { return holder.choice.has_value(); };
        const bool inside = site.in_function != nullptr
                                ? any
                                : holder_around(site.report.site, is_chosen) != nullptr;
        if (!inside) {
            refuse_forbidden(site);
        }
    }
}

// A name that binds nothing is most often a typing error: show the class that was meant. Of a
// preset it is nothing to tell, but where the model has a class of that very name.
void Kernelizer::report_unbound(const std::vector<Instance>& instances) {
    std::map<std::string, std::string> classes;  // full names by short ones
    std::set<std::string> unbound;               // short names
    std::set<std::string> bound;
    std::set<std::string> all;
    for (const Instance& instance : instances) {
        all.insert(instance.class_name);
    }
    for (const std::string& full : all) {
        bool free = true;
        for (const MappedLayer& layer : mapping_.layers) {
            if (binds(layer, full)) {
                bound.insert(layer.kernel_name);
                free = false;
            }
        }
        const std::string name = last_part(full);
        classes.emplace(name, full);
        if (free) {
            unbound.insert(name);
        }
    }
    std::vector<std::string> names;
    for (const auto& [name, full] : classes) {
        names.push_back(name);
    }
    for (const MappedLayer& layer : mapping_.layers) {
        if (!bound.insert(layer.kernel_name).second ||
            (layer.preset && !unbound.contains(layer.kernel_name))) {
            continue;
        }
        std::string text = layer.kernel_name + " binds no class of this model";
        if (const auto near = base::nearest(layer.kernel_name, names)) {
            text +=
                fmt::format("; this would bind the nearest: classes = [\"{}\"]", classes.at(*near));
        }
        report_.warnings.push_back(std::move(text));
    }
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

// The compilation of the chosen kernel or source, or why it cannot be had.
tl::expected<Compilation*, KeepReason> Kernelizer::loaded(const Choice& choice,
                                                          const torch::jit::Module& module) {
    try {
        return choice.kernel != nullptr ? &compilation_for(*choice.kernel, module)
                                        : &compilation_for(*choice.implementation, module);
    } catch (const Error& error) {
        const bool absent =
            error.code() == ErrorCode::not_found || error.code() == ErrorCode::unreachable;
        if ((error.code() != ErrorCode::refused && !absent) ||
            !options_.fallback.contains(Fallback::cannot_load)) {
            throw;
        }
        return tl::make_unexpected(
            KeepReason{Fallback::cannot_load, error.details().what + ": " + error.details().why});
    }
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
                                     wants_training(context_.mode)};
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

Compilation& Kernelizer::compilation_for(const MappedKernel& kernel,
                                         const torch::jit::Module& module) {
    const auto unit = module.type()->compilation_unit();
    const std::pair key{kernel.build_id(), unit.get()};
    if (const auto known = compilations_.find(key); known != compilations_.end()) {
        return *known->second;
    }
    if (options_.observer) {
        options_.observer("load-kernel", kernel.name);
    }
    const auto loaded = provider_(kernel);
    auto compilation = std::make_shared<Compilation>(
        std::make_shared<KernelPackage>(loaded->sources), unit, wants_training(context_.mode));
    compilation->set_dependencies([this, &kernel](const std::string& repo_id) {
        const MappedKernel* found = dependency_of(kernel, repo_id);
        return found ? std::make_shared<KernelPackage>(provider_(*found)->sources) : nullptr;
    });
    return *compilations_.emplace(key, std::move(compilation)).first->second;
}

// The kernel of this repository that the mapping has for the device; of several none can be told.
const MappedKernel* Kernelizer::dependency_of(const MappedKernel& kernel,
                                              const std::string& repo_id) {
    const MappedKernel* found = nullptr;
    for (const MappedKernel& one : mapping_.kernels) {
        if (one.repo_id != repo_id ||
            (one.device != kernel.device && one.device != "any" && kernel.device != "any")) {
            continue;
        }
        if (found != nullptr) {
            throw CannotCompile("get_kernel_dep(\"" + repo_id +
                                "\"): the mapping has several versions of it: " + found->name +
                                ", " + one.name);
        }
        found = &one;
    }
    if (found != nullptr) {
        dependencies_[kernel.build_id()].insert(found);
    }
    return found;
}

// A kernel and those whose functions its layers call: the model may name the operators of each.
void Kernelizer::mark_used_kernel(const MappedKernel& kernel, std::set<std::string>& used) {
    const std::string build_id = kernel.build_id();
    if (!used.insert(build_id).second) {
        return;
    }
    if (!kernel.op_namespace.empty()) {
        mark_model(model_, {kernel.name, kernel.variant, kernel.op_namespace, build_id});
    }
    for (const MappedKernel* dependency : dependencies_[build_id]) {
        mark_used_kernel(*dependency, used);
    }
}

void Kernelizer::mark_used_kernels() {
    std::set<std::string> used;
    for (const Site& site : sites_) {
        if (site.report.status != SiteStatus::replaced || site.choice->kernel == nullptr) {
            continue;
        }
        mark_used_kernel(*site.choice->kernel, used);
    }
}

}  // namespace twinkle::runtime
