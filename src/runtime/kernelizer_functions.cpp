// The part of a kernelize that replaces calls of functions.

#include "runtime/format.h"
#include "runtime/kernelizer.h"

#include "base/text.h"
#include "runtime/rewrite/forward_methods.h"
#include "runtime/rewrite/region_call.h"
#include "runtime/rewrite/stand_in.h"
#include "runtime/rewrite/training_check.h"
#include "runtime/selection/modes.h"
#include "twinkle/error.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

tl::unexpected<KeepReason> refused(Fallback fallback, std::string because) {
    return tl::make_unexpected(KeepReason{fallback, std::move(because)});
}

// What a Python file is called as a module, for messages.
std::string module_name(const std::string& file) {
    const std::string stem = file.substr(0, file.find('.'));
    const bool plain = !stem.empty() && std::all_of(stem.begin(), stem.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '_';
    });
    return plain ? stem : "source";
}

}  // namespace

void Kernelizer::find_calls() {
    if (mapping_.functions.empty()) {
        return;
    }
    std::set<std::string> called;
    for (const FunctionCall& call : function_calls(model_)) {
        called.insert(call.function);
        const auto function =
            std::find_if(mapping_.functions.begin(), mapping_.functions.end(),
                         [&](const auto& one) { return one.full_name() == call.function; });
        if (function == mapping_.functions.end()) {
            continue;
        }
        Site site{{call.path, "", call.instance}, {}, std::nullopt};
        site.is_call = true;
        site.in_function = call.in_function;
        const auto forwards = forward_methods(call.instance.type());
        site.in_forward =
            std::find(forwards.begin(), forwards.end(), call.caller) != forwards.end();
        site.report.site = call.site;
        site.report.kind = "function";
        site.report.of = call.function;
        if (!is_left_out(site)) {
            if (call.replaced) {
                keep(site, {std::nullopt, "it is kernelized already"});
            } else {
                select(site, *function);
            }
        }
        sites_.push_back(std::move(site));
    }
    find_inlined(called);
    report_uncalled(called);
}

void Kernelizer::select(Site& site, const MappedFunction& function) {
    auto choice = choose(mapping_, function, context_);
    if (choice) {
        site.choice = *choice;
    } else {
        keep(site, choice.error());
    }
}

void Kernelizer::report_uncalled(const std::set<std::string>& called) {
    const std::vector<std::string> names(called.begin(), called.end());
    for (const MappedFunction& function : mapping_.functions) {
        const std::string name = function.full_name();
        if (called.contains(name)) {
            continue;
        }
        std::string text = "no call of the function " + base::printable(name) + " is in this model";
        if (const auto near = base::nearest(name, names)) {
            text += "; the nearest is " + base::printable(*near);
        }
        if (options_.strict && !mapping_disabled()) {
            throw Error(ErrorCode::refused, {.what = text,
                                             .where = "",
                                             .why = "",
                                             .hint = "leave out strict to go on without it"});
        }
        report_.warnings.push_back(std::move(text));
    }
}

void Kernelizer::replace_calls() {
    replace_inlined();
    const bool any = std::any_of(sites_.begin(), sites_.end(), [](const Site& site) {
        return site.is_call && site.choice && !site.absorbed && !site.inlined;
    });
    if (!any) {
        return;
    }
    std::map<std::string, FunctionCall> calls;  // as the graphs are now
    for (FunctionCall& call : function_calls(model_)) {
        calls.emplace(call.site, std::move(call));
    }
    // Instances of a class share the call.
    std::map<const jit::Node*, tl::expected<void, KeepReason>> done;
    for (Site& site : sites_) {
        if (!site.is_call || !site.choice || site.absorbed || site.inlined) {
            continue;
        }
        const auto call = calls.find(site.report.site);
        if (call == calls.end()) {
            keep(site, {std::nullopt, "nothing that is left calls it"});
            continue;
        }
        auto result = done.find(call->second.node);
        if (result == done.end()) {
            result =
                done.emplace(call->second.node, replace_call(*site.choice, call->second)).first;
        }
        enter(site, result->second);
    }
    // What stood in a function that is called no longer was replaced in vain.
    std::set<std::string> left;
    for (const FunctionCall& call : function_calls(model_)) {
        left.insert(call.site);
    }
    for (Site& site : sites_) {
        if (site.in_function && site.choice && !left.contains(site.report.site)) {
            keep(site, {std::nullopt, "nothing that is left calls it"});
        }
    }
}

tl::expected<void, KeepReason> Kernelizer::replace_call(const Choice& choice,
                                                        const FunctionCall& call) {
    const auto function = stand_in(choice, call);
    if (!function) {
        return tl::make_unexpected(function.error());
    }
    call_instead(call.node, *function);
    return {};
}

tl::expected<jit::Function*, KeepReason> Kernelizer::stand_in(const Choice& choice,
                                                              const FunctionCall& call) {
    const FunctionCandidate& candidate = *choice.implementation;
    const auto unit = call.instance.type()->compilation_unit();
    const CallShape shape = shape_of(*call.node);
    const std::tuple key(static_cast<const void*>(unit.get()), shape.key(), &candidate);
    if (const auto known = stand_ins_.find(key); known != stand_ins_.end()) {
        return known->second;
    }
    const auto make = [&]() -> tl::expected<jit::Function*, KeepReason> {
        const auto& substitutes =
            substitutes_for(choice, call.instance, shape.function->getSchema());
        if (!substitutes) {
            return tl::make_unexpected(substitutes.error());
        }
        const auto made =
            make_stand_in(*unit, name_in_place_of(*shape.function), shape, *substitutes);
        if (!made) {
            return refused(Fallback::cannot_compile, made.error());
        }
        if (auto reason = unfit(**made)) {
            return tl::make_unexpected(*std::move(reason));
        }
        return *made;
    };
    return stand_ins_.emplace(key, make()).first->second;
}

std::optional<KeepReason> Kernelizer::unfit(jit::Function& stand_in) const {
    return wants_training(context_.mode) ? unfit_for_training(stand_in) : std::nullopt;
}

const tl::expected<Substitutes, KeepReason>& Kernelizer::substitutes_for(
    const Choice& choice, const jit::Module& module, const c10::FunctionSchema& stands_for) {
    const bool native = natives_.contains(choice.implementation->op);
    const std::tuple key(static_cast<const void*>(module.type()->compilation_unit().get()),
                         choice.implementation, native ? c10::str(stands_for) : "");
    auto known = substitutes_.find(key);
    if (known == substitutes_.end()) {
        known = substitutes_.emplace(key, make_substitutes(choice, module, stands_for)).first;
    }
    return known->second;
}

tl::expected<Substitutes, KeepReason> Kernelizer::make_substitutes(
    const Choice& choice, const jit::Module& module, const c10::FunctionSchema& stands_for) {
    const FunctionCandidate& candidate = *choice.implementation;
    Compilation* compilation = nullptr;
    if (choice.kernel != nullptr || candidate.op.empty()) {
        const auto had = loaded(choice, module);
        if (!had) {
            return tl::make_unexpected(had.error());
        }
        compilation = *had;
    }
    if (options_.observer) {
        options_.observer("compile", choice.function->full_name());
    }
    const auto native = natives_.find(candidate.op);
    auto substitutes = native != natives_.end()
                           ? native_substitutes(candidate.op.substr(candidate.op.find("::") + 2),
                                                native->second, stands_for)
                       : !candidate.op.empty() ? operator_substitutes(candidate.op)
                       : choice.kernel != nullptr
                           ? package_substitutes(*compilation, candidate.function)
                           : package_substitutes(*compilation, module_name(candidate.file) + "." +
                                                                   candidate.function);
    if (!substitutes) {
        return refused(candidate.op.empty() ? Fallback::cannot_compile : Fallback::cannot_load,
                       substitutes.error());
    }
    return *std::move(substitutes);
}

// Python text is a package with one module, called like its file.
Compilation& Kernelizer::compilation_for(const FunctionCandidate& source,
                                         const jit::Module& module) {
    const auto unit = module.type()->compilation_unit();
    const std::pair key{fmt::format("source {}", fmt::ptr(&source)), unit.get()};
    const auto known = compilations_.find(key);
    if (known != compilations_.end()) {
        return *known->second;
    }
    const std::map<std::string, std::string> files{
        {"__init__.py", ""}, {module_name(source.file) + ".py", source.source}};
    auto compilation = std::make_shared<Compilation>(std::make_shared<KernelPackage>(files), unit,
                                                     wants_training(context_.mode));
    return *compilations_.emplace(key, std::move(compilation)).first->second;
}

}  // namespace twinkle::runtime
