#include "runtime/plan/stand_ins.h"

#include "runtime/graph/format.h"
#include "runtime/graph/operator_configuration.h"
#include "runtime/patterns/original_function.h"
#include "runtime/patterns/pattern_calls.h"
#include "runtime/plan/inlined_binding.h"
#include "runtime/plan/sized_functions.h"
#include "runtime/proof/bound_call.h"
#include "runtime/proof/call_schema.h"

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

constexpr std::string_view originals_prefix = "__torch__.twinkle_originals.";

tl::unexpected<KeepReason> cannot_compile(std::string because) {
    return tl::make_unexpected(KeepReason{Fallback::cannot_compile, std::move(because)});
}

// Why the code cannot be configured as it was chosen; nothing: it is.
std::optional<std::string> not_configured(const Choice& choice, jit::Graph& graph) {
    const bool done =
        choice.cfg.empty() || configure_operators(graph, choice.kernel->op_namespace, choice.cfg);
    return done ? std::nullopt : std::optional(std::string("none of its operators is configured"));
}

}  // namespace

StandIns::Made StandIns::of_call(const Site& site, const FunctionCall& call) {
    return choosing(
        site, *call.instance.type()->compilation_unit(), name_in_place_of(call.callee()),
        [&](const Choice& choice) { return of_call(choice, call); },
        [&] { return Made(&call.callee()); });
}

StandIns::Made StandIns::of_region(const Site& site, const Region& region) {
    const auto unit = site.instance.module.type()->compilation_unit();
    const auto binding = binding_for(site, *site.choice);
    if (!binding) {
        return tl::make_unexpected(binding.error());
    }
    const auto place = place_given_by(*site.as<InlinedCallSite>(), *binding);
    return choosing(
        site, *unit, name_in_place_of(site.report.of, place),
        [&](const Choice& choice) {
            return of_region(site, choice, region, *binding_for(site, choice));
        },
        [&]() -> Made {
            const c10::QualifiedName name(std::string(originals_prefix) + site.report.of);
            return unit->create_function(unit->mangle(name),
                                         graph_of(bound_part(region, *binding)));
        });
}

StandIns::Made StandIns::of_place(const Site& site, const FlatGraph& graph,
                                  const PatternSite& place) {
    const auto unit = place.instance.module.type()->compilation_unit();
    return choosing(
        site, *unit, numbered("twinkle_functions.", place),
        [&](const Choice& choice) { return of_place(choice, graph, place); },
        [&]() -> Made {
            const auto made = original_of(graph, place, *unit,
                                          unit->mangle(numbered("twinkle_originals.", place)));
            return made ? Made(*made) : cannot_compile(made.error());
        });
}

StandIns::Made StandIns::choosing(const Site& site, jit::CompilationUnit& unit,
                                  const c10::QualifiedName& name,
                                  const std::function<Made(const Choice&)>& make,
                                  const std::function<Made()>& original) {
    if (!site.by_size) {
        return make(*site.choice);
    }
    SizedFunctions functions{site.by_size->input, {}};
    std::optional<Made> kept;
    for (const auto& [choice, up_to] : site.by_size->parts) {
        if (!choice && !kept) {
            kept = original();
        }
        const Made one = choice ? make(*choice) : *kept;
        if (!one) {
            return one;
        }
        functions.parts.emplace_back(*one, up_to);
    }
    const auto graph = graph_of(functions);
    return graph ? Made(unit.create_function(unit.mangle(name), *graph))
                 : cannot_compile(graph.error());
}

StandIns::Made StandIns::of_call(const Choice& choice, const FunctionCall& call) {
    const auto unit = call.instance.type()->compilation_unit();
    const CallShape shape = shape_of(*call.node);
    const std::tuple key(static_cast<const void*>(unit.get()), shape.key(), choice.implementation(),
                         choice.cfg_text());
    if (const auto known = known_.find(key); known != known_.end()) {
        return known->second;
    }
    auto made =
        make(choice, call.instance, shape, name_in_place_of(*shape.function), call.function);
    return known_.emplace(key, std::move(made)).first->second;
}

StandIns::Made StandIns::of_region(const Site& site, const Choice& choice, const Region& region,
                                   const CallBinding& binding) {
    const auto& substitutes =
        substitution_.of(choice, site.instance.module, call_schema(region), site.report.of);
    if (!substitutes) {
        return tl::make_unexpected(substitutes.error());
    }
    const auto graph = graph_of(region, substitutes->at(binding.substitute), binding);
    if (!graph) {
        return cannot_compile("a trace has inlined it, and " + graph.error());
    }
    if (const auto problem = not_configured(choice, **graph)) {
        return cannot_compile(*problem);
    }
    const auto unit = site.instance.module.type()->compilation_unit();
    const auto name =
        name_in_place_of(site.report.of, place_given_by(*site.as<InlinedCallSite>(), binding));
    const std::tuple key(static_cast<const void*>(unit.get()), choice.id(), name.qualifiedName(),
                         (*graph)->toString(false));
    jit::Function*& function = of_regions_[key];
    if (function == nullptr) {
        function = unit->create_function(unit->mangle(name), *graph);
    }
    if (auto reason = substitution_.unfit(choice, *function)) {
        return tl::make_unexpected(*std::move(reason));
    }
    return function;
}

StandIns::Made StandIns::of_place(const Choice& choice, const FlatGraph& graph,
                                  const PatternSite& place) {
    const auto unit = place.instance.module.type()->compilation_unit();
    const std::tuple key(static_cast<const void*>(unit.get()),
                         fmt::format("{}|{}", place.shape(), place.number), choice.implementation(),
                         choice.cfg_text());
    if (const auto known = known_.find(key); known != known_.end()) {
        return known->second;
    }
    if (!originals_) {
        originals_ = std::make_shared<jit::CompilationUnit>();
    }
    const auto made = [&]() -> Made {
        const auto original = original_of(graph, place, *originals_, numbered("", place));
        if (!original) {
            return cannot_compile(original.error());
        }
        CallShape shape{*original, {}};
        for (const MatchedParameter& parameter : place.match.parameters) {
            shape.constants.push_back(parameter.constant);
        }
        return make(choice, place.instance.module, shape, numbered("twinkle_functions.", place),
                    choice.bound_name());
    };
    return known_.emplace(key, made()).first->second;
}

StandIns::Made StandIns::make(const Choice& choice, const jit::Module& instance,
                              const CallShape& shape, const c10::QualifiedName& name,
                              const std::string& what) {
    const auto& stands_for = shape.function->getSchema();
    substitution_.refuse_other_arity(choice, stands_for, what);
    const auto& substitutes = substitution_.of(choice, instance, stands_for, what);
    if (!substitutes) {
        return tl::make_unexpected(substitutes.error());
    }
    const auto made =
        make_stand_in(*instance.type()->compilation_unit(), name, shape, *substitutes);
    if (!made) {
        return cannot_compile(made.error());
    }
    if (const auto problem = not_configured(choice, *jit::toGraphFunction(**made).graph())) {
        return cannot_compile(*problem);
    }
    if (auto reason = substitution_.unfit(choice, **made)) {
        return tl::make_unexpected(*std::move(reason));
    }
    return *made;
}

}  // namespace twinkle::runtime
