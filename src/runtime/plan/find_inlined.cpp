#include "runtime/plan/find_inlined.h"

#include "runtime/graph/forward_methods.h"
#include "runtime/graph/kernel_method.h"
#include "runtime/plan/inlined_binding.h"
#include "runtime/plan/left_out.h"
#include "runtime/plan/prove_inlined.h"
#include "runtime/plan/stand_ins.h"
#include "runtime/trace/inlined_code.h"

#include <algorithm>
#include <map>
#include <utility>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

const std::string inlined_and = "a trace has inlined it, and ";
const std::string not_proved =
    inlined_and + "only a run shows how to replace it: give inputs (--inputs)";

std::vector<InlinedGraph> inlined_graphs(const Job& job, TracedCalls& calls) {
    std::vector<InlinedGraph> graphs;
    std::map<const jit::Function*, std::optional<std::size_t>> known;
    for (const Instance& instance : instances_of(job.model)) {
        for (jit::Function* method : instance.module.type()->methods()) {
            auto* compiled = jit::tryToGraphFunction(*method);
            const auto [entry, first] = known.try_emplace(method);
            if (first && compiled != nullptr && !is_of_a_kernel(*method)) {
                InlinedCode code(*compiled->graph(), calls);
                if (!code.runs().empty()) {
                    entry->second = graphs.size();
                    graphs.push_back({{}, method, std::move(code)});
                }
            }
            if (entry->second) {
                graphs[*entry->second].instances.push_back(instance);
            }
        }
    }
    return graphs;
}

std::size_t index_among_its_function(const std::vector<TracedRun>& runs, const TracedRun& run) {
    return static_cast<std::size_t>(std::count_if(
        runs.data(), &run, [&](const TracedRun& one) { return one.function == run.function; }));
}

// Call number `number` of its function in the method of this instance.
Site site_of(const Job& job, const InlinedGraph& graph, const Instance& instance,
             const TracedRun& run, const RunPart& part, std::size_t number) {
    const std::string& method = graph.method->name();
    const std::string function = job.mapping.functions[run.function].full_name();
    const auto forwards = forward_methods(instance.module.type());
    InlinedCallSite call;
    call.in_forward = std::find(forwards.begin(), forwards.end(), graph.method) != forwards.end();
    call.method = method;
    call.function = run.function;
    call.place = {number, index_among_its_function(graph.code.runs(), run), part.begin, part.count,
                  0};
    call.nodes = run.nodes.size();
    const std::string caller = (instance.path.empty() ? "" : instance.path + ".") + method;
    return {instance, reported(site_of_call(caller, function, number), "function", function),
            std::move(call)};
}

// How a candidate is called in call number `call` of a run, or why it is not.
tl::expected<CallBinding, KeepReason> proved(const Proofs& proofs, const Proof* proof,
                                             std::size_t call, const Choice& choice) {
    const auto refused = [](const std::string& why) {
        return tl::make_unexpected(KeepReason{Fallback::cannot_compile, why});
    };
    const auto unusable = proofs.unusable.find(choice.implementation());
    if (unusable != proofs.unusable.end()) {
        return tl::make_unexpected(unusable->second);
    }
    if (proof == nullptr) {
        return refused(not_proved);
    }
    const auto& ids = proof->candidates;
    const auto place = std::find(ids.begin(), ids.end(), choice.id()) - ids.begin();
    const Answer::Bound& bound = proof->answer.calls.at(call).at(static_cast<std::size_t>(place));
    if (!bound) {
        return refused(inlined_and + bound.error());
    }
    if (bound->results.size() > most_inlined_results) {
        return refused(inlined_and + "it has too many results");
    }
    return *bound;
}

// Refuses the candidates of which no proof says how to call them; keeps a call if none is left.
void decide(const Job& job, const Proofs& proofs, const Proof* proof, std::size_t number,
            Site& site) {
    std::optional<KeepReason> first;
    for (Candidate& one : site.candidates) {
        if (!one.serves()) {
            continue;
        }
        auto binding = proved(proofs, proof, number, one.choice);
        if (binding) {
            site.as<InlinedCallSite>()->bindings.emplace(one.choice.id(), *std::move(binding));
        } else {
            one.refused = binding.error().because;
            first = first ? first : binding.error();
        }
    }
    std::stable_partition(site.candidates.begin(), site.candidates.end(),
                          [](const Candidate& one) { return one.serves(); });
    if (site.may_be_replaced()) {
        site.choice = site.candidates.front().choice;
    } else {
        site.choice.reset();
        enter(job, site, tl::make_unexpected(*std::move(first)));
    }
}

// Adds the sites of one graph, once for each instance that has it.
void add_sites(const Job& job, const InlinedGraph& graph, const Proofs& proofs, Plan& plan,
               std::set<std::string>& called) {
    std::set<std::string> taken;  // by what still is a call
    for (const Site& site : plan.sites) {
        taken.insert(site.report.site);
    }
    for (const Instance& instance : graph.instances) {
        std::map<std::size_t, std::size_t> numbers;  // by function
        for (const TracedRun& run : graph.code.runs()) {
            const auto known = proofs.of.find(&run);
            const Proof* proof = known != proofs.of.end() ? &known->second : nullptr;
            const RunSplit split =
                graph.code.splits(run)[proof != nullptr ? proof->answer.split : 0];
            for (std::size_t i = 0; i < split.size(); ++i) {
                std::size_t& number = numbers[run.function];
                Site site = site_of(job, graph, instance, run, split[i], ++number);
                while (taken.contains(site.report.site)) {
                    site = site_of(job, graph, instance, run, split[i], ++number);
                }
                called.insert(site.report.of);
                if (!leave_out(job, site)) {
                    choose_from(job, site,
                                candidates_for(job.mapping, job.mapping.functions[run.function],
                                               job.context));
                }
                if (site.choice) {
                    decide(job, proofs, proof, i, site);
                }
                plan.sites.push_back(std::move(site));
            }
        }
    }
}

}  // namespace

void find_inlined(const Job& job, StandIns& stand_ins, Plan& plan, std::set<std::string>& called) {
    TracedCalls calls(traced_functions(job.mapping));
    std::vector<InlinedGraph> graphs = inlined_graphs(job, calls);
    const Proofs proofs = prove(job, stand_ins, graphs);
    for (const InlinedGraph& graph : graphs) {
        add_sites(job, graph, proofs, plan, called);
    }
}

}  // namespace twinkle::runtime
