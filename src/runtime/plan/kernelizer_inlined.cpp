// The part of a kernelize that puts calls in the place of what a trace has inlined.

#include "runtime/graph/format.h"
#include "runtime/plan/kernelizer.h"

#include "runtime/graph/sites.h"
#include "runtime/proof/bound_call.h"
#include "runtime/proof/call_schema.h"
#include "runtime/trace/inlined_code.h"
#include "runtime/trace/region_call.h"

#include <algorithm>
#include <tuple>

namespace twinkle::runtime {

namespace jit = torch::jit;

void Kernelizer::replace_inlined() {
    std::map<jit::Function*, std::vector<Site*>> by_method;
    for (Site& site : sites_) {
        if (!site.inlined || !site.choice || site.absorbed) {
            continue;
        }
        const jit::Module instance = instance_at(model_, site.instance.path);
        jit::Function* method = instance.type()->findMethod(site.inlined->method);
        if (method == nullptr) {
            keep(site, {std::nullopt, "nothing that is left calls it"});
        } else {
            by_method[method].push_back(&site);
        }
    }
    for (const auto& [method, sites] : by_method) {
        replace_inlined(*method, sites);
    }
}

// Calls of one graph, those first that hold others.
void Kernelizer::replace_inlined(jit::Function& method, const std::vector<Site*>& sites) {
    struct Piece {
        std::vector<Site*> sites;  // of the instances that share the graph
        std::optional<InlinedCall> call;
    };
    TracedCalls calls(traced_functions(mapping_));
    const auto graph = jit::toGraphFunction(method).graph();
    InlinedCode code(*graph, calls);
    std::map<std::tuple<std::size_t, std::size_t, std::size_t>, Piece> pieces;
    for (Site* site : sites) {
        const auto& [name, function, place, nodes, binding] = *site->inlined;
        const TracedRun* run = code.run(function, place.run);
        Piece& piece = pieces[{function, place.run, place.begin}];
        piece.sites.push_back(site);
        if (run != nullptr && run->nodes.size() == nodes) {
            piece.call = code.call(*run, {place.begin, place.count});
        }
    }
    std::vector<Piece*> in_turn;
    for (auto& [place, piece] : pieces) {
        in_turn.push_back(&piece);
    }
    std::stable_sort(in_turn.begin(), in_turn.end(), [](const Piece* one, const Piece* other) {
        return one->sites[0]->inlined->place.count > other->sites[0]->inlined->place.count;
    });
    std::unordered_set<const jit::Node*> gone;
    for (Piece* piece : in_turn) {
        const auto result = replace_inlined(*piece->sites[0], code, piece->call, gone);
        for (Site* site : piece->sites) {
            enter(*site, result);
        }
    }
}

// `gone`: nodes that other calls may have held.
tl::expected<void, KeepReason> Kernelizer::replace_inlined(
    const Site& site, InlinedCode& code, std::optional<InlinedCall>& call,
    std::unordered_set<const jit::Node*>& gone) {
    const auto is_gone = [&](const jit::Node* node) { return gone.contains(node); };
    if (!call || std::any_of(call->nodes.begin(), call->nodes.end(), is_gone)) {
        return tl::make_unexpected(KeepReason{std::nullopt, "nothing that is left calls it"});
    }
    std::erase_if(call->shared, is_gone);
    const auto refused = [](const std::string& why) {
        return tl::make_unexpected(
            KeepReason{Fallback::cannot_compile, "a trace has inlined it, and " + why});
    };
    const auto region = code.close(*call);
    if (!region) {
        return refused(region.error());
    }
    const auto function = stand_in(site, *region);
    if (!function) {
        return tl::make_unexpected(function.error());
    }
    auto destroyed = call_in_place_of(bound_part(*region, site.inlined->binding), **function);
    if (!destroyed) {
        return refused(destroyed.error());
    }
    gone.merge(*destroyed);
    return {};
}

tl::expected<jit::Function*, KeepReason> Kernelizer::stand_in(const Site& site,
                                                              const Region& region) {
    const auto& binding = site.inlined->binding;
    const auto& substitutes =
        substitutes_for(*site.choice, site.instance.module, call_schema(region), site.report.of);
    if (!substitutes) {
        return tl::make_unexpected(substitutes.error());
    }
    const auto graph = graph_of(region, substitutes->at(binding.substitute), binding);
    if (!graph) {
        return tl::make_unexpected(
            KeepReason{Fallback::cannot_compile, "a trace has inlined it, and " + graph.error()});
    }
    const auto unit = site.instance.module.type()->compilation_unit();
    const auto name = name_in_place_of(site.report.of, site.inlined->place);
    const std::tuple key(static_cast<const void*>(unit.get()), name.qualifiedName(),
                         (*graph)->toString(false));
    jit::Function*& function = in_place_[key];
    if (function == nullptr) {
        function = unit->create_function(unit->mangle(name), *graph);
    }
    if (auto reason = unfit(*site.choice, *function)) {
        return tl::make_unexpected(*std::move(reason));
    }
    return function;
}

}  // namespace twinkle::runtime
