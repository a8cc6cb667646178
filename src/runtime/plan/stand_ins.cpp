#include "runtime/plan/stand_ins.h"

#include "runtime/graph/format.h"
#include "runtime/patterns/original_function.h"
#include "runtime/patterns/pattern_calls.h"
#include "runtime/proof/bound_call.h"
#include "runtime/proof/call_schema.h"

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

tl::unexpected<KeepReason> cannot_compile(std::string because) {
    return tl::make_unexpected(KeepReason{Fallback::cannot_compile, std::move(because)});
}

}  // namespace

StandIns::Made StandIns::of_call(const Choice& choice, const FunctionCall& call) {
    const auto unit = call.instance.type()->compilation_unit();
    const CallShape shape = shape_of(*call.node);
    const std::tuple key(static_cast<const void*>(unit.get()), shape.key(),
                         choice.implementation());
    if (const auto known = known_.find(key); known != known_.end()) {
        return known->second;
    }
    auto made =
        make(choice, call.instance, shape, name_in_place_of(*shape.function), call.function);
    return known_.emplace(key, std::move(made)).first->second;
}

StandIns::Made StandIns::of_region(const Site& site, const Region& region) {
    const auto& call = *site.as<InlinedCallSite>();
    const auto& substitutes =
        substitution_.of(*site.choice, site.instance.module, call_schema(region), site.report.of);
    if (!substitutes) {
        return tl::make_unexpected(substitutes.error());
    }
    const auto graph = graph_of(region, substitutes->at(call.binding.substitute), call.binding);
    if (!graph) {
        return cannot_compile("a trace has inlined it, and " + graph.error());
    }
    const auto unit = site.instance.module.type()->compilation_unit();
    const auto name = name_in_place_of(site.report.of, call.place);
    const std::tuple key(static_cast<const void*>(unit.get()), name.qualifiedName(),
                         (*graph)->toString(false));
    jit::Function*& function = of_regions_[key];
    if (function == nullptr) {
        function = unit->create_function(unit->mangle(name), *graph);
    }
    if (auto reason = substitution_.unfit(*site.choice, *function)) {
        return tl::make_unexpected(*std::move(reason));
    }
    return function;
}

StandIns::Made StandIns::of_place(const Choice& choice, const FlatGraph& graph,
                                  const PatternSite& place) {
    const auto unit = place.instance.module.type()->compilation_unit();
    const std::tuple key(static_cast<const void*>(unit.get()),
                         fmt::format("{}|{}", place.shape(), place.number),
                         choice.implementation());
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
    if (auto reason = substitution_.unfit(choice, **made)) {
        return tl::make_unexpected(*std::move(reason));
    }
    return *made;
}

}  // namespace twinkle::runtime
