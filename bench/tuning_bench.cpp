// The operators of the bundled pack through their executor: what tuning chooses, beside the
// original (LibTorch's operators) and beside an exhaustive search over the same configurations.
//
//   tuning_bench [--device cuda] [--threads N] [--seconds S] [--op NAME]
//
// A JSON object a case, on standard output. On a CPU times are CPU time, contestants take turns.
// Measurements are kept below the folder that XDG_CACHE_HOME names: give an empty one.
#include <twinkle/tuning.h>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

namespace {

using at::Tensor;
using twinkle::AbstractInput;
using twinkle::Invocation;

constexpr int search_turns = 100;  // of the exhaustive search, for every candidate
constexpr double shortest_sample_us = 100;

struct Case {
    std::string op;
    std::vector<AbstractInput> inputs;
    std::function<void()> call;
};

struct Spread {
    double lower, median, upper;
};

double cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double wall_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

Spread spread_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const auto at = [&](double share) {
        return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
    };
    return {at(0.25), at(0.5), at(0.75)};
}

template <class... A>
Case one(const std::string& op, const std::function<void()>& call, const A&... arguments) {
    return {op, twinkle::abstract_inputs(arguments...), call};
}

std::vector<Case> cases(std::int64_t tokens, std::int64_t width, at::ScalarType dtype,
                        const c10::Device& device) {
    namespace ops = twinkle::ops;
    const auto options = at::TensorOptions().dtype(dtype).device(device);
    const auto random = [&](std::int64_t columns) {
        return torch::randn({tokens, columns}, options.dtype(torch::kFloat)).to(dtype);
    };
    const Tensor x = random(width), y = random(width), wide = random(2 * width);
    const std::optional<Tensor> weight = torch::ones({width}, options),
                                bias = torch::zeros({width}, options);
    const Tensor heads =
        torch::randn({tokens, width / 128, 128}, options.dtype(torch::kFloat)).to(dtype);
    const Tensor angles = torch::randn({tokens, 1, 128}, options.dtype(torch::kFloat)).to(dtype);
    return {
        one(
            "silu", [=] { ops::silu(x); }, x),
        one(
            "gelu", [=] { ops::gelu(x); }, x),
        one(
            "gelu_tanh", [=] { ops::gelu_tanh(x); }, x),
        one(
            "relu", [=] { ops::relu(x); }, x),
        one(
            "silu_mul", [=] { ops::silu_mul(x, y); }, x, y),
        one(
            "gelu_mul", [=] { ops::gelu_mul(x, y); }, x, y),
        one(
            "gelu_tanh_mul", [=] { ops::gelu_tanh_mul(x, y); }, x, y),
        one(
            "silu_and_mul", [=] { ops::silu_and_mul(wide); }, wide),
        one(
            "gelu_and_mul", [=] { ops::gelu_and_mul(wide); }, wide),
        one(
            "gelu_tanh_and_mul", [=] { ops::gelu_tanh_and_mul(wide); }, wide),
        one(
            "mul_and_silu", [=] { ops::mul_and_silu(wide); }, wide),
        one(
            "rms_norm", [=] { ops::rms_norm(x, weight); }, x, weight, 1e-6, 0.0, false),
        one(
            "layer_norm", [=] { ops::layer_norm(x, weight, bias); }, x, weight, bias, 1e-5),
        one(
            "add_rms_norm", [=] { ops::add_rms_norm(x, y, weight); }, x, y, weight, 1e-6, 0.0,
            false),
        one(
            "add_layer_norm", [=] { ops::add_layer_norm(x, y, weight, bias); }, x, y, weight, bias,
            1e-5),
        one(
            "apply_rotary", [=] { ops::apply_rotary(heads, angles, angles); }, heads, angles,
            angles, false),
    };
}

// Microseconds a call of each configuration, in turns.
std::vector<Spread> search(const Case& one, const std::vector<std::string>& cfgs,
                           const c10::Device& device) {
    const std::string name = "twinkle-pack::" + one.op;
    std::vector<std::vector<double>> times(cfgs.size());
    int repeats = 1;
    for (int turn = -2; turn < search_turns; ++turn) {
        for (std::size_t i = 0; i < cfgs.size(); ++i) {
            twinkle::ops::selector().set_cfg(name, cfgs[i]);
            one.call();  // finds its configuration
            double us = 0;
            if (device.is_cpu()) {
                const double begin = cpu_seconds();
                for (int k = 0; k < repeats; ++k) {
                    one.call();
                }
                us = (cpu_seconds() - begin) * 1e6 / repeats;
            } else {
                us = twinkle::benchmark(one.call, {.num_iters = 1, .num_warmup = 0}, device)
                         .median_us;
            }
            if (turn >= 0) {
                times[i].push_back(us);
            } else {
                repeats =
                    std::max(repeats, static_cast<int>(shortest_sample_us / std::max(us, 0.1)));
            }
        }
    }
    twinkle::ops::selector().set_cfg(name, std::nullopt);
    std::vector<Spread> all;
    for (auto& own : times) {
        all.push_back(spread_of(std::move(own)));
    }
    return all;
}

std::string text_of(const Spread& spread) {
    char text[100];
    std::snprintf(text, sizeof text, "[%.3f,%.3f,%.3f]", spread.lower, spread.median, spread.upper);
    return text;
}

void run(const Case& one, std::int64_t tokens, std::int64_t width, const std::string& dtype,
         const c10::Device& device) {
    const auto seconds = device.is_cpu() ? cpu_seconds : wall_seconds;
    const Invocation invocation{.operation = "twinkle-pack::" + one.op,
                                .inputs = one.inputs,
                                .device = device.is_cpu() ? "cpu" : "cuda"};
    double begin = seconds();
    {
        const twinkle::policy_override measuring(
            {twinkle::TuningPolicy::When::first_use, std::chrono::minutes(60)});
        one.call();  // measures, and runs
    }
    const double tuning = seconds() - begin;
    const auto taken = twinkle::ops::selector().cache().get(invocation.key());
    if (!taken) {
        std::fprintf(stderr, "%s was not tuned\n", one.op.c_str());
        std::exit(1);
    }
    std::vector<std::string> cfgs;
    std::size_t chosen = 0;
    for (const auto& candidate :
         twinkle::ops::tune_recorded(invocation, {.num_iters = 1}).candidates) {
        if (candidate.problem.empty()) {
            chosen = candidate.cfg == *taken ? cfgs.size() : chosen;
            cfgs.push_back(candidate.cfg);
        }
    }
    begin = seconds();
    const auto found = search(one, cfgs, device);
    const double searching = seconds() - begin;
    std::string all;
    for (std::size_t i = 0; i < cfgs.size(); ++i) {
        all += (i == 0 ? "" : ",") + std::string("{\"cfg\":") + cfgs[i] +
               ",\"us\":" + text_of(found[i]) + "}";
    }
    std::printf(
        "{\"op\":\"%s\",\"tokens\":%ld,\"width\":%ld,\"dtype\":\"%s\",\"chosen\":%zu,"
        "\"tuning_s\":%.5f,\"search_s\":%.5f,\"candidates\":[%s]}\n",
        one.op.c_str(), tokens, width, dtype.c_str(), chosen, tuning, searching, all.c_str());
    std::fflush(stdout);
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

}  // namespace

int main(int argc, char** argv) {
    std::string device_name = "cpu", only;
    double limit = 300;
    int threads = 1, devices = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string option = argv[i], value = argv[i + 1];
        if (option == "--device") device_name = value;
        if (option == "--op") only = value;
        if (option == "--seconds") limit = std::stod(value);
        if (option == "--threads") threads = std::stoi(value);
        if (option == "--gpus") devices = std::stoi(value);
    }
    at::set_num_threads(threads);
    const torch::NoGradGuard no_grad;
    const c10::Device device(device_name);
    if (devices > 1) check_devices(devices);
    const double begin = wall_seconds();
    const std::vector<std::pair<std::string, at::ScalarType>> dtypes = {
        {"float32", at::kFloat}, {"bfloat16", at::kBFloat16}, {"float16", at::kHalf}};
    // Few tokens first: where the time ends, the largest are left out.
    for (const std::int64_t tokens : {1, 16, 256, 4096, 65536}) {
        for (const std::int64_t width : {1024, 4096}) {
            for (const auto& [name, dtype] : dtypes) {
                if (tokens * width > (std::int64_t{1} << (device.is_cpu() ? 22 : 28))) continue;
                for (const Case& one : cases(tokens, width, dtype, device)) {
                    if (wall_seconds() - begin > limit) return 0;
                    if (only.empty() || only == one.op) run(one, tokens, width, name, device);
                }
            }
        }
    }
}
