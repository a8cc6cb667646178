// The operators of the bundled pack through their executor: what tuning chooses, beside the
// original (LibTorch's operators) and beside an exhaustive search over the same configurations.
//
//   tuning_bench [--device cuda] [--threads N] [--seconds S] [--call-seconds S] [--op NAME]
//                [--tokens 1,16] [--width 1024] [--dtype float32] [--pass forward|training]
//
// A JSON object a case, on standard output; what is left out, on standard error. On a CPU times are
// CPU time, contestants take turns. A pass of training is forward and backward, and each has a
// configuration of its own. The user's store is neither read nor written.
#include "tuning_cases.h"

#include <twinkle/tuning.h>

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

using at::Tensor;
using bench::Case;
using bench::NamedCase;
using bench::Size;
using twinkle::ChosenBy;
using twinkle::Measurement;
using twinkle::RunMode;

constexpr int most_turns = 100;  // of the exhaustive search, for every candidate
constexpr int least_turns = 9;   // where calls are slow
constexpr double search_seconds = 3;
constexpr double shortest_sample_us = 100;

double cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double wall_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

double seconds_on(const c10::Device& device) {
    return device.is_cpu() ? cpu_seconds() : wall_seconds();
}

struct Spread {
    double lower, median, upper;
};

Spread spread_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const auto at = [&](double share) {
        return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
    };
    return {at(0.25), at(0.5), at(0.75)};
}

// What every call is given: by direction, as an operation without gradients has one alone.
using Cfgs = std::map<RunMode, std::string>;

void give(const Cfgs& cfgs) {
    twinkle::ops::selector().set_part(ChosenBy::argument, [=](const twinkle::Question& question) {
        const auto known = cfgs.find(question.invocation.mode);
        return known != cfgs.end()
                   ? std::optional(twinkle::Choice{known->second, ChosenBy::argument})
                   : std::nullopt;
    });
}

// As a program's first call does: each direction is measured where it asks.
std::map<RunMode, Measurement> tuned(const std::function<void()>& call) {
    std::map<RunMode, Measurement> found;
    auto& selector = twinkle::ops::selector();
    give({});
    selector.set_part(ChosenBy::measurement, [&](const twinkle::Question& question) {
        Measurement& own = found[question.invocation.mode];
        own = question.measure(0);
        return std::optional(
            twinkle::Choice{own.candidates.at(own.best).cfg, ChosenBy::measurement});
    });
    call();
    selector.set_part(ChosenBy::measurement, [](const twinkle::Question&) { return std::nullopt; });
    return found;
}

struct Candidate {
    Cfgs cfgs;
    bool is_chosen = true;  // in all directions
};

// All that are right, of all directions together.
std::vector<Candidate> candidates_of(const std::map<RunMode, Measurement>& found) {
    std::vector<Candidate> all = {{}};
    for (const auto& [mode, measurement] : found) {
        std::vector<Candidate> longer;
        for (const Candidate& begun : all) {
            for (std::size_t i = 0; i < measurement.candidates.size(); ++i) {
                if (measurement.candidates[i].problem.empty()) {
                    longer.push_back(begun);
                    longer.back().cfgs[mode] = measurement.candidates[i].cfg;
                    longer.back().is_chosen &= i == measurement.best;
                }
            }
        }
        all = std::move(longer);
    }
    return all;
}

double microseconds(const std::function<void()>& call, int repeats, const c10::Device& device) {
    if (!device.is_cpu()) {
        return twinkle::benchmark(call, {.num_iters = 1, .num_warmup = 0}, device).median_us;
    }
    const double begin = cpu_seconds();
    for (int k = 0; k < repeats; ++k) {
        call();
    }
    return (cpu_seconds() - begin) * 1e6 / repeats;
}

struct Searched {
    std::vector<Spread> us;  // a call of each
    int turns = most_turns;
};

// In turns: as many as there is time for, and two before that.
Searched search(const std::function<void()>& call, const std::vector<Candidate>& candidates,
                const c10::Device& device) {
    Searched searched;
    std::vector<std::vector<double>> times(candidates.size());
    int repeats = 1;
    for (int turn = -2; turn < searched.turns; ++turn) {
        double all_us = 0;
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            give(candidates[i].cfgs);
            call();  // finds its configurations
            const double us = microseconds(call, repeats, device);
            all_us += us * (repeats + 1);
            if (turn >= 0) {
                times[i].push_back(us);
            } else {
                repeats =
                    std::max(repeats, static_cast<int>(shortest_sample_us / std::max(us, 0.1)));
            }
        }
        if (turn == -1) {
            searched.turns = std::clamp(static_cast<int>(search_seconds * 1e6 / all_us),
                                        least_turns, most_turns);
        }
    }
    for (auto& own : times) {
        searched.us.push_back(spread_of(std::move(own)));
    }
    return searched;
}

std::string text_of(const Spread& spread) {
    char text[100];
    std::snprintf(text, sizeof text, "[%.3f,%.3f,%.3f]", spread.lower, spread.median, spread.upper);
    return text;
}

// {"cfg": …, "us": …}, in training with the "backward" configuration.
std::string text_of(const Candidate& candidate, const Spread& us) {
    std::string text = "{";
    for (const auto& [mode, cfg] : candidate.cfgs) {
        text += std::string(mode == RunMode::backward ? "\"backward\":" : "\"cfg\":") + cfg + ",";
    }
    return text + "\"us\":" + text_of(us) + "}";
}

std::function<void()> pass_of(const Case& one, bool training) {
    if (!training) {
        return [call = one.call] {
            const torch::NoGradGuard no_grad;
            call();
        };
    }
    std::vector<Tensor> grads;
    for (const Tensor& result : one.call()) {
        grads.push_back(at::ones_like(result));
    }
    return [one, grads] { torch::autograd::grad(one.call(), one.leaves, grads); };
}

struct Options {
    std::string device = "cpu", only, pass;
    double seconds = 300, call_seconds = 1;
    int threads = 1, gpus = 0;
    std::vector<std::string> tokens{"1", "16", "256", "4096", "65536"}, widths{"1024", "4096"},
        dtypes{"float32", "bfloat16", "float16"};
};

void run(const NamedCase& named, const Size& size, const std::string& dtype, bool training,
         const Options& options) {
    const Case one = named.make(size);
    give({});
    const auto call = pass_of(one, training);
    call();
    const double call_begin = seconds_on(size.device);
    call();
    const double usual = seconds_on(size.device) - call_begin;
    if (usual > options.call_seconds) {
        std::fprintf(stderr, "left out: a call of %s, %ld tokens of %ld %s, takes %.1f s\n",
                     named.op.c_str(), size.tokens, size.width, dtype.c_str(), usual);
        return;
    }
    double begin = seconds_on(size.device);
    const auto found = tuned(call);
    const double tuning = seconds_on(size.device) - begin;
    const auto candidates = candidates_of(found);
    begin = seconds_on(size.device);
    const Searched searched = search(call, candidates, size.device);
    const double searching = seconds_on(size.device) - begin;
    std::string all;
    std::size_t chosen = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        all += (i == 0 ? "" : ",") + text_of(candidates[i], searched.us[i]);
        chosen = candidates[i].is_chosen ? i : chosen;
    }
    std::printf(
        "{\"op\":\"%s\",\"pass\":\"%s\",\"tokens\":%ld,\"width\":%ld,\"dtype\":\"%s\","
        "\"chosen\":%zu,\"turns\":%d,\"tuning_s\":%.5f,\"search_s\":%.5f,\"candidates\":[%s]}\n",
        named.op.c_str(), training ? "training" : "forward", size.tokens, size.width, dtype.c_str(),
        chosen, searched.turns, tuning, searching, all.c_str());
    std::fflush(stdout);
}

// What a call takes at most, about: inputs, results, and what LibTorch's own way has between them,
// in float32; with gradients.
double bytes_of(const Size& size, bool training) {
    return 4.0 * static_cast<double>(size.tokens) * static_cast<double>(size.width) *
           (training ? 24 : 12);
}

double free_bytes() {
    std::ifstream file("/proc/meminfo");
    for (std::string name, line; file >> name && std::getline(file, line);) {
        if (name == "MemAvailable:") return std::stod(line) * 1024;
    }
    return 0;
}

bool fits(const Size& size, bool training) {
    constexpr std::int64_t most_on_gpu = std::int64_t{1} << 28;
    constexpr double share = 0.8;
    const bool fitting = size.device.is_cpu() ? bytes_of(size, training) < share * free_bytes()
                                              : size.tokens * size.width <= most_on_gpu;
    if (!fitting) {
        std::fprintf(stderr, "left out: %ld tokens of %ld%s do not fit into memory\n", size.tokens,
                     size.width, training ? ", in training," : "");
    }
    return fitting;
}

// One part a device, one choice for all: the results of one device alone.
void check_devices(int count) {
    std::vector<c10::Device> devices;
    for (int i = 0; i < count; ++i) {
        devices.emplace_back(c10::kCUDA, static_cast<c10::DeviceIndex>(i));
    }
    struct Silu : twinkle::Operation<twinkle::CfgFields> {
        std::string name() const override { return "bench::silu"; }
        Tensor run(const Tensor& x, const twinkle::CfgFields&) const { return at::silu(x); }
    };
    const Tensor x = torch::randn({64 * count, 512}, devices.front());
    const Tensor y = twinkle::devices_with_config(twinkle::Executor(), Silu(), devices, {0}, 0, x);
    std::printf("{\"devices_with_config\":%d,\"equal\":%s}\n", count,
                at::equal(y, at::silu(x)) ? "true" : "false");
}

std::vector<std::string> listed(const std::string& text) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    return parts;
}

Options read_options(int argc, char** argv) {
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string option = argv[i], value = argv[i + 1];
        if (option == "--device") options.device = value;
        if (option == "--op") options.only = value;
        if (option == "--pass") options.pass = value;
        if (option == "--seconds") options.seconds = std::stod(value);
        if (option == "--call-seconds") options.call_seconds = std::stod(value);
        if (option == "--threads") options.threads = std::stoi(value);
        if (option == "--gpus") options.gpus = std::stoi(value);
        if (option == "--tokens") options.tokens = listed(value);
        if (option == "--width") options.widths = listed(value);
        if (option == "--dtype") options.dtypes = listed(value);
    }
    return options;
}

// Few tokens first: where the time ends, the largest are left out.
void run_all(const Options& options) {
    const std::map<std::string, at::ScalarType> dtypes = {
        {"float32", at::kFloat}, {"bfloat16", at::kBFloat16}, {"float16", at::kHalf}};
    const double begin = wall_seconds();
    for (const std::string& tokens : options.tokens) {
        for (const std::string& width : options.widths) {
            for (const std::string& dtype : options.dtypes) {
                const Size size{std::stol(tokens), std::stol(width), dtypes.at(dtype),
                                c10::Device(options.device)};
                for (const bool training : {false, true}) {
                    const std::string pass = training ? "training" : "forward";
                    if (!options.pass.empty() && options.pass != pass) continue;
                    if (!fits(size, training)) continue;
                    for (const NamedCase& one : bench::all_cases()) {
                        if (wall_seconds() - begin > options.seconds) return;
                        const std::string op = one.op.substr(0, one.op.find(' '));
                        if (options.only.empty() || options.only == op)
                            run(one, size, dtype, training, options);
                    }
                }
            }
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    const Options options = read_options(argc, argv);
    at::set_num_threads(options.threads);
    twinkle::ops::selector().set_order({ChosenBy::argument, ChosenBy::measurement, ChosenBy::rule});
    twinkle::ops::selector().set_part(ChosenBy::measurement,
                                      [](const twinkle::Question&) { return std::nullopt; });
    if (options.gpus > 1) check_devices(options.gpus);
    run_all(options);
}
