// The part of a kernelize that replaces calls of functions.

#include "runtime/graph/format.h"
#include "runtime/plan/kernelizer.h"

#include "base/text.h"
#include "runtime/calls/stand_in.h"
#include "runtime/graph/forward_methods.h"
#include "runtime/selection/modes.h"
#include "runtime/source/single_file.h"
#include "runtime/trace/region_call.h"
#include "twinkle/error.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

tl::unexpected<KeepReason> refused(Fallback fallback, std::string because) {
    return tl::make_unexpected(KeepReason{fallback, std::move(because)});
}

}  // namespace

void Kernelizer::find_calls() {
    if (mapping_.functions.empty()) {
        return;
    }
    std::set<std::string> called;
    std::map<const void*, std::vector<jit::Function*>> forwards;  // by type
    for (const FunctionCall& call : function_calls(model_, &uses_)) {
        called.insert(call.function);
        const auto function =
            std::find_if(mapping_.functions.begin(), mapping_.functions.end(),
                         [&](const auto& one) { return one.full_name() == call.function; });
        if (function == mapping_.functions.end()) {
            continue;
        }
        Site site{{call.path, "", call.instance}, {}, std::nullopt};
        site.is_call = true;
        site.in_function = call.in_function ? call.caller : nullptr;
        const auto type = call.instance.type();
        auto own = forwards.find(type.get());
        if (own == forwards.end()) {
            own = forwards.emplace(type.get(), forward_methods(type)).first;
        }
        site.in_forward =
            std::find(own->second.begin(), own->second.end(), call.caller) != own->second.end();
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
        } else if (function.target_module.starts_with("torch")) {
            text += "; as an operator it is found by a pattern";
        }
        report_nowhere(std::move(text));
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
    const auto unit = call.instance.type()->compilation_unit();
    const CallShape shape = shape_of(*call.node);
    const std::tuple key(static_cast<const void*>(unit.get()), shape.key(), choice.implementation);
    if (const auto known = stand_ins_.find(key); known != stand_ins_.end()) {
        return known->second;
    }
    auto made = make_stand_in_for(choice, call.instance, shape, name_in_place_of(*shape.function),
                                  call.function);
    return stand_ins_.emplace(key, std::move(made)).first->second;
}

// `what` it stands for, for the observer.
tl::expected<jit::Function*, KeepReason> Kernelizer::make_stand_in_for(
    const Choice& choice, const jit::Module& instance, const CallShape& shape,
    const c10::QualifiedName& name, const std::string& what) {
    refuse_other_arity(choice, shape.function->getSchema(), what);
    const auto& substitutes = substitutes_for(choice, instance, shape.function->getSchema(), what);
    if (!substitutes) {
        return tl::make_unexpected(substitutes.error());
    }
    const auto made =
        make_stand_in(*instance.type()->compilation_unit(), name, shape, *substitutes);
    if (!made) {
        return refused(Fallback::cannot_compile, made.error());
    }
    if (auto reason = unfit(choice, **made)) {
        return tl::make_unexpected(*std::move(reason));
    }
    return *made;
}

// A C++ function that cannot be called as what it stands for is a mistake of the program; the model
// would only show it when it runs.
void Kernelizer::refuse_other_arity(const Choice& choice, const c10::FunctionSchema& stands_for,
                                    const std::string& what) const {
    const auto native = natives_.find(choice.implementation->op);
    if (native == natives_.end() || !native->second.parameters()) {
        return;
    }
    const auto& parameters = *native->second.parameters();
    if (parameters.size() == stands_for.arguments().size()) {
        return;
    }
    throw Error(
        ErrorCode::refused,
        {.what = fmt::format("the C++ function that is registered for {} takes {} arguments, "
                             "not {}",
                             what, parameters.size(), stands_for.arguments().size()),
         .where = "",
         .why = fmt::format("the model calls {}; the C++ function takes ({})", c10::str(stands_for),
                            fmt::join(parameters, ", ")),
         .hint = "register a function with the parameters of what it stands for"});
}

OperatorUse Kernelizer::operator_use() const {
    return {context_.device, wants_training(context_.mode)};
}

std::optional<KeepReason> Kernelizer::unfit(const Choice& choice, jit::Function& stand_in) const {
    const auto native = natives_.find(choice.implementation->op);
    if (wants_training(context_.mode) && native != natives_.end() &&
        !native->second.is_differentiable()) {
        return KeepReason{Fallback::no_compatible_mode,
                          native->second.name() + " records no gradients"};
    }
    return unusable_operator(stand_in, operator_use());
}

const tl::expected<Substitutes, KeepReason>& Kernelizer::substitutes_for(
    const Choice& choice, const jit::Module& module, const c10::FunctionSchema& stands_for,
    const std::string& what) {
    const bool native = natives_.contains(choice.implementation->op);
    const std::tuple key(static_cast<const void*>(module.type()->compilation_unit().get()),
                         choice.implementation, native ? c10::str(stands_for) : "");
    auto known = substitutes_.find(key);
    if (known == substitutes_.end()) {
        known = substitutes_.emplace(key, make_substitutes(choice, module, stands_for, what)).first;
    }
    return known->second;
}

tl::expected<Substitutes, KeepReason> Kernelizer::make_substitutes(
    const Choice& choice, const jit::Module& module, const c10::FunctionSchema& stands_for,
    const std::string& what) {
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
        options_.observer("compile", what);
    }
    const auto native = natives_.find(candidate.op);
    auto substitutes = native != natives_.end()
                           ? native_substitutes(candidate.op.substr(candidate.op.find("::") + 2),
                                                native->second, stands_for)
                       : !candidate.op.empty() ? operator_substitutes(candidate.op)
                       : choice.kernel != nullptr
                           ? package_substitutes(*compilation, candidate.function)
                           : package_substitutes(*compilation, module_name_of(candidate.file) +
                                                                   "." + candidate.function);
    if (!substitutes) {
        return refused(candidate.op.empty() ? Fallback::cannot_compile : Fallback::cannot_load,
                       substitutes.error());
    }
    return *std::move(substitutes);
}

Compilation& Kernelizer::compilation_for(const FunctionCandidate& source,
                                         const jit::Module& module) {
    const auto unit = module.type()->compilation_unit();
    const std::pair key{fmt::format("source {}", fmt::ptr(&source)), unit.get()};
    const auto known = compilations_.find(key);
    if (known != compilations_.end()) {
        return *known->second;
    }
    const auto package =
        std::make_shared<KernelPackage>(single_file_package(source.file, source.source));
    auto compilation = std::make_shared<Compilation>(package, unit, wants_training(context_.mode));
    return *compilations_.emplace(key, std::move(compilation)).first->second;
}

}  // namespace twinkle::runtime
