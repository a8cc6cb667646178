// Runs contestants of model_bench.py, one call after the other, as a C++ server would:
//
//   model_runner NAME=MODEL…           NAME=frozen:MODEL freezes it after loading
//
// Reads questions from stdin and answers each with one number:
//   time NAME TOKENS CALLS             seconds a call
//   differ NAME TOKENS CALLS           Euclidean distance to the result of the first contestant,
//                                      relative to that
#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <stdexcept>

#include "twinkle/load.h"

namespace {

using Clock = std::chrono::steady_clock;

torch::jit::Module load(const std::string& path) {
    const std::string frozen = "frozen:";
    if (!path.starts_with(frozen)) return twinkle::load(path);
    torch::jit::Module module = twinkle::load(path.substr(frozen.size()));
    module.eval();
    return torch::jit::freeze(module);
}

// Those of models.py.
at::Tensor tokens(int64_t count) {
    return (at::arange(count, at::kLong) * 7919).remainder(999).add(1).unsqueeze(0);
}

double seconds_per_call(torch::jit::Module& module, const at::Tensor& inputs, int calls) {
    const auto start = Clock::now();
    for (int call = 0; call < calls; ++call) module.forward({inputs});
    return std::chrono::duration<double>(Clock::now() - start).count() / calls;
}

double difference(torch::jit::Module& module, torch::jit::Module& reference,
                  const at::Tensor& inputs) {
    const at::Tensor expected = reference.forward({inputs}).toTensor().to(at::kDouble);
    const at::Tensor result = module.forward({inputs}).toTensor().to(at::kDouble);
    return ((result - expected).norm() / expected.norm()).item<double>();
}

void answer_all(int argc, char** argv) {
    std::map<std::string, torch::jit::Module> modules;
    std::string first;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        const size_t equals = argument.find('=');
        if (equals == std::string::npos) throw std::invalid_argument("NAME=MODEL expected");
        modules.emplace(argument.substr(0, equals), load(argument.substr(equals + 1)));
        if (first.empty()) first = argument.substr(0, equals);
    }
    const c10::InferenceMode inference;
    std::string what, name;
    int64_t count;
    int calls;
    while (std::cin >> what >> name >> count >> calls) {
        torch::jit::Module& module = modules.at(name);
        const double answer = what == "time" ? seconds_per_call(module, tokens(count), calls)
                                             : difference(module, modules.at(first), tokens(count));
        std::printf("%.9g\n", answer);
        std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        answer_all(argc, argv);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "model_runner: %s\n", error.what());
        return 1;
    }
}
