#include "runtime/plan/find_inlined.h"

#include "runtime/graph/forward_methods.h"
#include "runtime/graph/kernel_method.h"
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
constexpr std::size_t most_results = 60;  // InlinedPlace::given has a bit for each

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

std::uint64_t given_by(const CallBinding& binding) {
    std::uint64_t given = 0;
    for (std::size_t i = 0; i < binding.results.size() && i < most_results; ++i) {
        given |= binding.results[i] ? std::uint64_t{1} << i : 0;
    }
    return given;
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

// Keeps a call if no proof says how to replace it.
void decide(const Job& job, const Proofs& proofs, Site& site,
            const tl::expected<CallBinding, std::string>* proved) {
    const std::string name = site.choice->describe();
    const auto refuse_others = [&](const std::string& because) {
        for (Candidate& one : site.candidates) {
            if (one.serves() && one.choice != *site.choice) {
                one.refused = inlined_and + because;
            }
        }
    };
    const auto refuse = [&](KeepReason reason) {
        refuse_others("only " + name + " was tried");
        enter(job, site, tl::make_unexpected(std::move(reason)));
    };
    if (proved == nullptr) {
        const auto known = proofs.unusable.find(site.choice->implementation());
        refuse(known != proofs.unusable.end() ? known->second
                                              : KeepReason{Fallback::cannot_compile, not_proved});
    } else if (!*proved) {
        refuse({Fallback::cannot_compile, inlined_and + proved->error()});
    } else if ((*proved)->results.size() > most_results) {
        refuse({Fallback::cannot_compile, inlined_and + "it has too many results"});
    } else {
        auto& call = *site.as<InlinedCallSite>();
        call.binding = **proved;
        call.place.given = given_by(**proved);
        refuse_others("how to call it was proved of " + name + " alone");
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
            const auto known = proofs.answers.find(&run);
            const Answer* answer = known != proofs.answers.end() ? &known->second : nullptr;
            const RunSplit split = graph.code.splits(run)[answer != nullptr ? answer->split : 0];
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
                    decide(job, proofs, site, answer != nullptr ? &answer->calls.at(i) : nullptr);
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
