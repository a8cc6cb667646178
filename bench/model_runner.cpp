// Runs contestants of model_bench.py and gpu_model_bench.py, one call after the other, as a C++
// server would:
//
//   model_runner [--device cuda] [--shape N,…] [--dtype NAME] NAME=[HOW:]MODEL…
//
//   frozen:MODEL     freezes it after loading   graphs:MODEL  through twinkle::GraphedModel
//   optimized:MODEL  optimize_for_inference     fused:MODEL   the same with LibTorch's fuser
//   separate:MODEL   as graphs, with its linear layers apart
//   plain:MODEL      with its weights as the file has them
//
// With --shape inputs are random, and TOKENS is how many of that shape; they have the dtype.
//
// Reads questions from stdin and answers each with one number:
//   time NAME TOKENS CALLS             seconds a call, back to back; on a GPU by its own clock
//   wait NAME TOKENS CALLS             seconds a call, waiting for the result of each
//   differ NAME TOKENS CALLS           Euclidean distance to the result of the first contestant,
//                                      relative to that
//   resident NAME TOKENS CALLS         MiB of this process
//   load NAME TOKENS CALLS             seconds that loading it took
//   replays NAME TOKENS CALLS          of captured graphs so far; -1, with the reasons on stderr,
//                                      where there was none
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "twinkle/graphed_model.h"
#include "twinkle/load.h"

namespace {

// Seconds on the wall or, with TWINKLE_BENCH_CLOCK=processor, on the processor: for one thread,
// where other programs take turns on its core.
double now() {
    static const bool processor = std::getenv("TWINKLE_BENCH_CLOCK") != nullptr;
    timespec time{};
    clock_gettime(processor ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

at::Device device = at::kCPU;

struct Contestant {
    std::function<at::Tensor(const at::Tensor&)> call;
    std::function<double()> replays = [] { return 0.0; };
    double loading = 0;
};

Contestant graphed(torch::jit::Module module, const twinkle::GraphOptions& options) {
    auto model = std::make_shared<twinkle::GraphedModel>(std::move(module), options);
    return {[model](const at::Tensor& inputs) { return model->forward({inputs}).toTensor(); },
            [model] {
                const twinkle::GraphStatistics said = model->statistics();
                for (const auto& [reason, count] : said.reasons) {
                    std::fprintf(stderr, "%s: %llu\n", reason.c_str(),
                                 static_cast<unsigned long long>(count));
                }
                return said.replays == 0 ? -1 : double(said.replays);
            }};
}

Contestant loaded(const std::string& path) {
    const size_t colon = path.find(':');
    const std::string how = colon == std::string::npos ? "" : path.substr(0, colon);
    torch::jit::Module module = twinkle::load(how.empty() ? path : path.substr(colon + 1),
                                              {.device = device.type(), .prepack = how != "plain"});
    module.eval();
    if (how == "graphs") return graphed(std::move(module), {});
    if (how == "fused") return graphed(std::move(module), {.fuse = true});
    if (how == "separate") return graphed(std::move(module), {.join = false});
    if (how == "unfrozen") return graphed(std::move(module), {.freeze = false});
    if (how == "frozen") module = torch::jit::freeze(module);
    if (how == "optimized") module = torch::jit::optimize_for_inference(module);
    return {
        [module](const at::Tensor& inputs) mutable { return module.forward({inputs}).toTensor(); }};
}

Contestant load(const std::string& path) {
    const double start = now();
    Contestant one = loaded(path);
    one.loading = now() - start;
    return one;
}

// The tokens of models.py.
at::Tensor tokens(int64_t count) {
    return (at::arange(count, at::kLong) * 7919).remainder(999).add(1).unsqueeze(0).to(device);
}

std::vector<int64_t> shape;  // behind the batch; empty for tokens
at::ScalarType dtype = at::kFloat;

// The random ones of models.py.
at::Tensor inputs_of(int64_t count) {
    if (shape.empty()) return tokens(count);
    std::vector<int64_t> whole = {count};
    whole.insert(whole.end(), shape.begin(), shape.end());
    at::manual_seed(1);
    return at::randn(whole).to(device, dtype);
}

std::vector<int64_t> numbers(const std::string& text) {
    std::vector<int64_t> all;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) all.push_back(std::stoll(part));
    return all;
}

double resident() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.rfind("VmRSS:", 0) == 0) return std::stod(line.substr(6)) / 1024;
    }
    return 0;
}

c10::Stream stream() {
    return c10::impl::VirtualGuardImpl(device.type()).getStream({device.type(), 0});
}

double by_the_devices_clock(const Contestant& one, const at::Tensor& inputs, int calls) {
    c10::Event begin(device.type(), c10::EventFlag::BACKEND_DEFAULT);
    c10::Event end(device.type(), c10::EventFlag::BACKEND_DEFAULT);
    begin.record(stream());
    for (int call = 0; call < calls; ++call) one.call(inputs);
    end.record(stream());
    end.synchronize();
    return begin.elapsedTime(end) / 1e3 / calls;
}

double seconds_per_call(const Contestant& one, const at::Tensor& inputs, int calls, bool wait) {
    if (device.is_cuda() && !wait) return by_the_devices_clock(one, inputs, calls);
    const double start = now();
    for (int call = 0; call < calls; ++call) {
        one.call(inputs);
        if (device.is_cuda()) stream().synchronize();
    }
    return (now() - start) / calls;
}

double difference(const Contestant& one, const Contestant& reference, const at::Tensor& inputs) {
    const at::Tensor expected = reference.call(inputs).to(at::kDouble);
    const at::Tensor result = one.call(inputs).to(at::kDouble);
    return ((result - expected).norm() / expected.norm()).item<double>();
}

double answer_about(const std::string& what, const std::map<std::string, Contestant>& contestants,
                    const std::string& first, const std::string& name, int64_t count, int calls) {
    const Contestant& one = contestants.at(name);
    if (what == "replays") return one.replays();
    if (what == "load") return one.loading;
    const at::Tensor inputs = inputs_of(count);
    if (what == "differ") return difference(one, contestants.at(first), inputs);
    return seconds_per_call(one, inputs, calls, what == "wait");
}

void answer_all(int argc, char** argv) {
    std::map<std::string, Contestant> contestants;
    std::string first;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument == "--device" && i + 1 < argc) {
            device = at::Device(argv[++i]);
            continue;
        }
        if (argument == "--shape" && i + 1 < argc) {
            shape = numbers(argv[++i]);
            continue;
        }
        if (argument == "--dtype" && i + 1 < argc) {
            dtype = std::string(argv[++i]) == "bfloat16" ? at::kBFloat16 : at::kFloat;
            continue;
        }
        const size_t equals = argument.find('=');
        if (equals == std::string::npos) throw std::invalid_argument("NAME=MODEL expected");
        contestants.emplace(argument.substr(0, equals), load(argument.substr(equals + 1)));
        if (first.empty()) first = argument.substr(0, equals);
    }
    const c10::InferenceMode inference;
    std::string what, name;
    int64_t count;
    int calls;
    while (std::cin >> what >> name >> count >> calls) {
        const double answer = what == "resident"
                                  ? resident()
                                  : answer_about(what, contestants, first, name, count, calls);
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
