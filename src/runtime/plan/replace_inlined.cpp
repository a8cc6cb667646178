#include "runtime/plan/replace_inlined.h"

#include "runtime/plan/inlined_binding.h"
#include "runtime/proof/bound_call.h"
#include "runtime/trace/inlined_code.h"
#include "runtime/trace/region_call.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// A call in one graph.
struct Piece {
    std::vector<Site*> sites;  // of the instances that share the graph
    std::optional<InlinedCall> call;

    std::size_t runs() const { return sites.front()->as<InlinedCallSite>()->place.count; }
};

// `gone`: destroyed nodes, which other calls may have held.
tl::expected<void, KeepReason> replace(StandIns& stand_ins, InlinedCode& code, Piece& piece,
                                       std::unordered_set<const jit::Node*>& gone) {
    const Site& site = *piece.sites.front();
    const auto is_gone = [&](const jit::Node* node) { return gone.contains(node); };
    if (!piece.call || std::any_of(piece.call->nodes.begin(), piece.call->nodes.end(), is_gone)) {
        return tl::make_unexpected(KeepReason{std::nullopt, "nothing that is left calls it"});
    }
    std::erase_if(piece.call->shared, is_gone);
    const auto refused = [](const std::string& why) {
        return tl::make_unexpected(
            KeepReason{Fallback::cannot_compile, "a trace has inlined it, and " + why});
    };
    const auto region = code.close(*piece.call);
    if (!region) {
        return refused(region.error());
    }
    const auto function = stand_ins.of_region(site, *region);
    if (!function) {
        return tl::make_unexpected(function.error());
    }
    const Region part = bound_part(*region, *binding_for(site, *site.choice));
    auto destroyed = call_in_place_of(part, **function);
    if (!destroyed) {
        return refused(destroyed.error());
    }
    gone.merge(*destroyed);
    return {};
}

// Replaces the calls of one graph, outer ones first.
void replace_in(const Job& job, jit::Function& method, const std::vector<Site*>& sites,
                StandIns& stand_ins) {
    TracedCalls calls(traced_functions(job.mapping));
    const auto graph = jit::toGraphFunction(method).graph();
    InlinedCode code(*graph, calls);
    std::map<std::tuple<std::size_t, std::size_t, std::size_t>, Piece> pieces;
    for (Site* site : sites) {
        const auto& inlined = *site->as<InlinedCallSite>();
        const auto& place = inlined.place;
        const TracedRun* run = code.run(inlined.function, place.run);
        Piece& piece = pieces[{inlined.function, place.run, place.begin}];
        piece.sites.push_back(site);
        if (run != nullptr && run->nodes.size() == inlined.nodes) {
            piece.call = code.call(*run, {place.begin, place.count});
        }
    }
    std::vector<Piece*> in_turn;
    for (auto& [place, piece] : pieces) {
        in_turn.push_back(&piece);
    }
    std::stable_sort(in_turn.begin(), in_turn.end(), [](const Piece* one, const Piece* other) {
        return one->runs() > other->runs();
    });
    std::unordered_set<const jit::Node*> gone;
    for (Piece* piece : in_turn) {
        const auto result = replace(stand_ins, code, *piece, gone);
        for (Site* site : piece->sites) {
            enter(job, *site, result);
        }
    }
}

}  // namespace

void replace_inlined(const Job& job, Plan& plan, StandIns& stand_ins) {
    std::map<jit::Function*, std::vector<Site*>> by_method;
    for (Site& site : plan.sites) {
        const auto* inlined = site.as<InlinedCallSite>();
        if (inlined == nullptr || !site.choice || site.absorbed) {
            continue;
        }
        const jit::Module instance = instance_at(job.model, site.instance.path);
        jit::Function* method = instance.type()->findMethod(inlined->method);
        if (method == nullptr) {
            keep(job, site, {std::nullopt, "nothing that is left calls it"});
        } else {
            by_method[method].push_back(&site);
        }
    }
    for (const auto& [method, sites] : by_method) {
        replace_in(job, *method, sites, stand_ins);
    }
}

}  // namespace twinkle::runtime
