// Measures the search for a mapping's patterns in a model, without replacing anything, and the
// search for its functions in a trace: pattern_search MAPPING MODEL… prints for each model as JSON
// its size, the places found, and for each stage the seconds of processor time and of the clock:
// the shortest of many rounds and their median; and those of the first.
#include "runtime/graph/graph_walk.h"
#include "runtime/graph/sites.h"
#include "runtime/patterns/pattern_sites.h"
#include "runtime/trace/inlined_code.h"

#include <torch/csrc/jit/api/function_impl.h>

#include <ctime>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <set>
#include <vector>

namespace {

using namespace twinkle::runtime;
constexpr int rounds = 15;

// The machine may do other work, which processor time does not count.
double seconds(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Times {
    double first = 0;
    std::vector<double> processor, clock;  // sorted
};

template <typename Do>
Times times(const Do& one) {
    Times all;
    for (int i = 0; i < rounds; ++i) {
        const double start = seconds(CLOCK_MONOTONIC);
        const double own = seconds(CLOCK_THREAD_CPUTIME_ID);
        one();
        all.processor.push_back(seconds(CLOCK_THREAD_CPUTIME_ID) - own);
        all.clock.push_back(seconds(CLOCK_MONOTONIC) - start);
    }
    all.first = all.processor.front();
    std::sort(all.processor.begin(), all.processor.end());
    std::sort(all.clock.begin(), all.clock.end());
    return all;
}

void print(const char* stage, const Times& one) {
    std::printf(", \"%s\": {\"first\": %.6f, \"processor\": [%.6f, %.6f], \"clock\": [%.6f, %.6f]}",
                stage, one.first, one.processor.front(), one.processor[rounds / 2],
                one.clock.front(), one.clock[rounds / 2]);
}

// The nodes of every graph that the methods of the model reach, each once, constants included.
std::size_t nodes_of(const FlatGraph& flat) {
    std::set<const torch::jit::Graph*> graphs;
    std::size_t nodes = 0;
    for (const Frame& frame : flat.frames) {
        if (graphs.insert(frame.graph.get()).second) {
            for_each_node(frame.graph->block(), [&](const torch::jit::Node*) { ++nodes; });
        }
    }
    return nodes;
}

std::size_t traced_calls(const torch::jit::Module& model,
                         const std::vector<TracedFunction>& functions) {
    TracedCalls calls(functions);
    std::size_t found = 0;
    for (const Instance& instance : instances_of(model)) {
        for (torch::jit::Function* method : instance.module.type()->methods()) {
            if (auto* compiled = torch::jit::tryToGraphFunction(*method)) {
                const InlinedCode code(*compiled->graph(), calls);
                for (const TracedRun& run : code.runs()) {
                    found += code.splits(run).front().size();
                }
            }
        }
    }
    return found;
}

void measure(const twinkle::Mapping& mapping, const char* path) {
    const torch::jit::Module model = torch::jit::load(path);
    std::vector<TracedFunction> functions;
    for (const auto& function : mapping.functions) {
        functions.push_back({function.target_module, function.func_name});
    }
    std::vector<PatternRule> rules;
    const Times compile = times([&] { rules = compile_patterns(mapping); });
    FlatGraph flat;
    const Times flattening = times([&] { flat = flatten(model, /*never_trains=*/true).value(); });
    const Times matching = times([&] {
        for (const PatternRule& rule : rules) {
            for (const auto& formula : rule.formulas) {
                find_formula(flat, *formula).value();
            }
        }
    });
    PatternSearch search;
    const Times all =
        times([&] { search = find_patterns(model, mapping, rules, /*may_train=*/false); });
    std::size_t calls = 0;
    const Times traced = times([&] { calls = traced_calls(model, functions); });
    std::printf("{\"model\": \"%s\", \"nodes\": %zu, \"operations\": %zu, \"instances\": %zu, ",
                path, nodes_of(flat), flat.nodes.size(), instances_of(model).size());
    std::printf("\"found\": %zu, \"calls\": %zu", search.sites.size(), calls);
    print("compile", compile);
    print("flatten", flattening);
    print("match", matching);
    print("search", all);
    print("traced", traced);
    std::puts("}");
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 3) {
        std::fputs("pattern_search MAPPING MODEL…\n", stderr);
        return 2;
    }
    try {
        const auto mapping = twinkle::Mapping::load(arguments[1]);
        for (int i = 2; i < count; ++i) {
            measure(mapping, arguments[i]);
        }
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
