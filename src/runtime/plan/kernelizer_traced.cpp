// The part of a kernelize that finds calls of functions which a trace has inlined, and how they can
// be replaced.

#include "runtime/graph/format.h"
#include "runtime/plan/kernelizer.h"

#include "runtime/convert/moved_model.h"
#include "runtime/graph/forward_methods.h"
#include "runtime/graph/graph_walk.h"
#include "runtime/graph/kernel_method.h"
#include "runtime/graph/past_runs.h"
#include "runtime/graph/sites.h"
#include "runtime/model/inputs.h"
#include "runtime/proof/call_prover.h"
#include "runtime/proof/call_schema.h"
#include "runtime/trace/inlined_code.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

struct InlinedGraph {
    // Instances share their code: where it is one of several, each of them has its sites.
    std::vector<Instance> instances;
    jit::Function* method = nullptr;
    InlinedCode code;
};

namespace {

const std::string inlined_and = "a trace has inlined it, and ";
const std::string not_proved =
    inlined_and + "only a run shows how to replace it: give inputs (--inputs)";

// Of what it holds, and of what freezing has made constants.
std::uint64_t bytes_of(const jit::Module& model) {
    std::uint64_t bytes = 0;
    for (const at::Tensor& parameter : model.parameters()) {
        bytes += parameter.nbytes();
    }
    for (const jit::Node* constant : tensor_constants(model)) {
        bytes += constant->t(c10::attr::value).nbytes();
    }
    return bytes;
}

std::uint64_t given_by(const CallBinding& binding) {
    std::uint64_t given = 0;
    for (std::size_t i = 0; i < binding.results.size() && i < 60; ++i) {
        given |= binding.results[i] ? std::uint64_t{1} << i : 0;
    }
    return given;
}

std::size_t index_among_its_function(const std::vector<TracedRun>& runs, const TracedRun& run) {
    return static_cast<std::size_t>(std::count_if(
        runs.data(), &run, [&](const TracedRun& one) { return one.function == run.function; }));
}

}  // namespace

// What a trace went through is found by the stacks of its nodes.
void Kernelizer::find_inlined(std::set<std::string>& called) {
    TracedCalls calls(traced_functions(mapping_));
    std::vector<InlinedGraph> graphs = inlined_graphs(calls);
    const auto answers = prove(graphs);
    for (InlinedGraph& graph : graphs) {
        add_inlined(graph, answers, called);
    }
}

std::vector<InlinedGraph> Kernelizer::inlined_graphs(TracedCalls& calls) {
    std::vector<InlinedGraph> graphs;
    std::map<const jit::Function*, std::optional<std::size_t>> known;
    for (const Instance& instance : instances_of(model_)) {
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

// How to replace the calls of every run that something can stand for.
std::map<const TracedRun*, Answer> Kernelizer::prove(std::vector<InlinedGraph>& graphs) {
    std::map<const TracedRun*, Answer> answers;
    if ((options_.inputs.empty() && options_.named_inputs.empty()) || mapping_disabled()) {
        return answers;
    }
    std::vector<Question> questions;
    std::vector<const TracedRun*> runs;
    for (InlinedGraph& graph : graphs) {
        for (const TracedRun& run : graph.code.runs()) {
            if (auto question = question_about(graph, run)) {
                questions.push_back(*std::move(question));
                runs.push_back(&run);
            }
        }
    }
    if (questions.empty()) {
        return answers;
    }
    if (options_.observer) {
        options_.observer("prove", "how to call what a trace has inlined");
    }
    const auto run = [this] { run_model(); };
    const bool on_gpu = options_.prove_on && !options_.prove_on->is_cpu();
    const auto limits = on_gpu ? SandboxLimits::for_bytes_on_gpu(bytes_of(model_))
                               : SandboxLimits::for_bytes(bytes_of(model_));
    auto proved = options_.kernels_in_children
                      ? prove_calls_in_child(questions, run, limits, options_.prove_on)
                      : prove_calls(questions, run);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        answers.emplace(runs[i], std::move(proved.at(i)));
    }
    return answers;
}

std::optional<Question> Kernelizer::question_about(InlinedGraph& graph, const TracedRun& run) {
    const auto choice = choose(mapping_, mapping_.functions[run.function], context_);
    if (!choice) {
        return std::nullopt;
    }
    Question question;
    c10::FunctionSchema like("call", "", {}, {});
    for (const RunSplit& split : graph.code.splits(run)) {
        auto& regions = question.splits.emplace_back();
        for (const RunPart& part : split) {
            regions.push_back(graph.code.close(graph.code.call(run, part)));
            like = regions.back() ? call_schema(*regions.back()) : like;
        }
    }
    const auto& substitutes = substitutes_for(*choice, graph.instances.front().module, like,
                                              mapping_.functions[run.function].full_name());
    if (!substitutes) {
        unusable_.emplace(choice->implementation, substitutes.error());
        return std::nullopt;
    }
    question.substitutes = &*substitutes;
    return question;
}

// A copy, as a run may change what a model holds; its code is the same.
void Kernelizer::run_model() {
    const torch::NoGradGuard no_grad;
    const jit::GraphOptimizerEnabledGuard unoptimized(false);
    forget_runs(model_);
    Inputs inputs = deep_copy({options_.inputs, options_.named_inputs});
    const auto device = options_.kernels_in_children ? options_.prove_on : std::nullopt;
    if (device) {
        move_to(inputs, *device);
    }
    at::manual_seed(0);
    const jit::Module copy = device ? moved_to(model_, *device) : model_.deepcopy();
    copy.get_method("forward")(inputs.positional, inputs.named);
    forget_runs(model_);
}

// The sites of one graph, once for each instance that has it.
void Kernelizer::add_inlined(const InlinedGraph& graph,
                             const std::map<const TracedRun*, Answer>& answers,
                             std::set<std::string>& called) {
    std::set<std::string> taken;  // by what still is a call
    for (const Site& site : sites_) {
        taken.insert(site.report.site);
    }
    for (const Instance& instance : graph.instances) {
        std::map<std::size_t, std::size_t> numbers;  // by function
        for (const TracedRun& run : graph.code.runs()) {
            const auto known = answers.find(&run);
            const Answer* answer = known != answers.end() ? &known->second : nullptr;
            const RunSplit split = graph.code.splits(run)[answer != nullptr ? answer->split : 0];
            for (std::size_t i = 0; i < split.size(); ++i) {
                Site site = inlined_site(graph, instance, run, split[i], numbers[run.function]);
                while (taken.contains(site.report.site)) {
                    site = inlined_site(graph, instance, run, split[i], numbers[run.function]);
                }
                called.insert(site.report.of);
                if (!is_left_out(site)) {
                    select(site, mapping_.functions[run.function]);
                }
                if (site.choice) {
                    decide(site, answer != nullptr ? &answer->calls.at(i) : nullptr);
                }
                sites_.push_back(std::move(site));
            }
        }
    }
}

Kernelizer::Site Kernelizer::inlined_site(const InlinedGraph& graph, const Instance& instance,
                                          const TracedRun& run, const RunPart& part,
                                          std::size_t& number) const {
    Site site{instance, {}, std::nullopt};
    const std::string& method = graph.method->name();
    site.report.site = site_of_call((instance.path.empty() ? "" : instance.path + ".") + method,
                                    mapping_.functions[run.function].full_name(), ++number);
    site.report.kind = "function";
    site.report.of = mapping_.functions[run.function].full_name();
    const auto forwards = forward_methods(instance.module.type());
    site.is_call = true;
    site.in_forward = std::find(forwards.begin(), forwards.end(), graph.method) != forwards.end();
    const InlinedPlace place{number, index_among_its_function(graph.code.runs(), run), part.begin,
                             part.count, 0};
    site.inlined = Inlined{method, run.function, place, run.nodes.size(), {}};
    return site;
}

// What the proof says of a call; none: there was no proof.
void Kernelizer::decide(Site& site, const tl::expected<CallBinding, std::string>* proved) {
    const Choice choice = *site.choice;
    tl::expected<void, KeepReason> result;
    if (proved == nullptr) {
        const auto known = unusable_.find(choice.implementation);
        result = tl::make_unexpected(known != unusable_.end()
                                         ? known->second
                                         : KeepReason{Fallback::cannot_compile, not_proved});
    } else if (!*proved) {
        result = tl::make_unexpected(
            KeepReason{Fallback::cannot_compile, inlined_and + proved->error()});
    } else if ((*proved)->results.size() > 60) {
        result = tl::make_unexpected(
            KeepReason{Fallback::cannot_compile, inlined_and + "it has too many results"});
    } else {
        site.inlined->binding = **proved;
        site.inlined->place.given = given_by(**proved);
        return;
    }
    enter(site, result);
}

}  // namespace twinkle::runtime
