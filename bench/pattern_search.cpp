// What looking for the patterns of a mapping costs in a model, without replacing anything:
// pattern_search MAPPING MODEL… prints for each model as JSON the operations in its flat graph, the
// places that were found, and the shortest and median seconds of making the graph and of looking.
#include "runtime/patterns/pattern_sites.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr int rounds = 15;

template <typename Do>
std::vector<double> times(const Do& one) {
    std::vector<double> seconds;
    for (int i = 0; i < rounds; ++i) {
        const auto start = Clock::now();
        one();
        seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds;
}

void measure(const twinkle::Mapping& mapping, const char* path) {
    using namespace twinkle::runtime;
    const torch::jit::Module model = torch::jit::load(path);
    std::vector<PatternRule> rules;
    const auto compile = times([&] { rules = compile_patterns(mapping); });
    const auto flat = times([&] { flatten(model).value(); });
    PatternSearch search;
    const auto all = times([&] { search = find_patterns(model, rules); });
    std::printf(
        "{\"model\": \"%s\", \"operations\": %zu, \"found\": %zu, \"compile\": %.6f, "
        "\"flatten\": [%.6f, %.6f], \"search\": [%.6f, %.6f]}\n",
        path, search.graph.nodes.size(), search.sites.size(), compile.front(), flat.front(),
        flat[rounds / 2], all.front(), all[rounds / 2]);
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
