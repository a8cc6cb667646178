// The bundled pack against TorchScript and against a copy, on this CPU, in one run.
//
//   pack_bench [--json FILE] [--seconds S] [--quantile Q] [--op NAME] [--dtype NAME]
//
// On a machine that does other work too, a low quantile (0.1) comes nearest to the undisturbed
// time.
#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>

#include "contestants.h"

namespace {

using bench::Case;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Timing {
    std::string name;
    double low, median, high;  // seconds a call; low and high: quartiles
    double shown;              // the quantile of the table
};

double quantile(std::vector<double>& values, double q) {
    const auto at =
        values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

// One sample of each contestant in turn, so that whatever disturbs the machine disturbs all. Inputs
// alternate; a sample is as many calls as take about a tenth of a millisecond.
std::vector<Timing> measure(const Case& c, std::vector<bench::Contestant> contestants,
                            double budget, double shown) {
    std::vector<std::vector<at::Tensor>> inputs;
    const auto sets = static_cast<size_t>(bench::input_sets(c));
    for (size_t i = 0; i < sets; ++i) inputs.push_back(bench::make_inputs(c));

    std::vector<int> calls;
    for (auto& contestant : contestants) {
        for (int i = 0; i < 5; ++i) contestant.run(inputs[static_cast<size_t>(i) % sets]);
        const auto start = Clock::now();
        for (size_t i = 0; i < 4; ++i) contestant.run(inputs[i % sets]);
        calls.push_back(std::max(1, static_cast<int>(1e-4 / (seconds_since(start) / 4))));
    }
    std::vector<std::vector<double>> samples(contestants.size());
    const auto start = Clock::now();
    size_t turn = 0;
    while (samples[0].size() < 9 || (seconds_since(start) < budget && samples[0].size() < 4000)) {
        for (size_t k = 0; k < contestants.size(); ++k) {
            // Each goes first as often as the others.
            const size_t index = (k + turn) % contestants.size();
            const auto begin = Clock::now();
            for (int call = 0; call < calls[index]; ++call)
                contestants[index].run(inputs[(turn + static_cast<size_t>(call)) % sets]);
            samples[index].push_back(seconds_since(begin) / calls[index]);
        }
        ++turn;
    }
    std::vector<Timing> timings;
    for (size_t k = 0; k < contestants.size(); ++k)
        timings.push_back({contestants[k].name, quantile(samples[k], 0.25),
                           quantile(samples[k], 0.5), quantile(samples[k], 0.75),
                           quantile(samples[k], shown)});
    return timings;
}

std::string load_pack(const std::string& folder) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
        if (file.path().extension() != ".so") continue;
        if (!dlopen(file.path().c_str(), RTLD_NOW)) throw std::runtime_error(dlerror());
        return file.path().stem().string().substr(1);
    }
    throw std::runtime_error("no library in " + folder);
}

const char* dtype_name(at::ScalarType dtype) {
    return dtype == at::kFloat ? "float32" : "bfloat16";
}

void print_row(const Case& c, const std::vector<Timing>& t) {
    std::printf("| %-8s | %-8s | %6ld | %6ld |", c.op.c_str(), dtype_name(c.dtype), c.tokens,
                c.width);
    for (const auto& timing : t) std::printf(" %11.1f |", timing.shown * 1e6);
    std::printf(" %9.2f | %13.2f | %5.1f | %5.0f %% | %10.0f %% |\n", t[1].shown / t[0].shown,
                t[2].shown / t[0].shown, bench::bytes_moved(c) / t[0].shown / 1e9,
                100 * t[3].shown / t[0].shown, 100 * t[5].shown / t[4].shown);
    std::fflush(stdout);
}

void write_json_row(std::ofstream& json, bool first, const Case& c,
                    const std::vector<Timing>& timings) {
    json << (first ? "" : ",\n") << "  {\"op\": \"" << c.op << "\", \"dtype\": \""
         << dtype_name(c.dtype) << "\", \"tokens\": " << c.tokens << ", \"width\": " << c.width
         << ", \"bytes\": " << static_cast<int64_t>(bench::bytes_moved(c)) << ", \"seconds\": {";
    for (size_t i = 0; i < timings.size(); ++i)
        json << (i ? ", " : "") << "\"" << timings[i].name << "\": [" << timings[i].low << ", "
             << timings[i].median << ", " << timings[i].high << "]";
    json << "}}";
}

}  // namespace

int main(int argc, char** argv) {
    std::string json_path, only_op, only_dtype;
    double budget = 2, shown = 0.5;
    for (int i = 1; i < argc; i += 2) {
        const std::string option = argv[i];
        if (i + 1 < argc && option == "--json")
            json_path = argv[i + 1];
        else if (i + 1 < argc && option == "--seconds")
            budget = std::stod(argv[i + 1]);
        else if (i + 1 < argc && option == "--quantile")
            shown = std::stod(argv[i + 1]);
        else if (i + 1 < argc && option == "--op")
            only_op = argv[i + 1];
        else if (i + 1 < argc && option == "--dtype")
            only_dtype = argv[i + 1];
        else {
            std::fprintf(stderr,
                         "usage: pack_bench [--json FILE] [--seconds S] [--quantile Q] [--op NAME] "
                         "[--dtype NAME]\n");
            return 2;
        }
    }
    const std::string op_namespace = load_pack(TWINKLE_PACK_DIR);
    c10::InferenceMode inference;
    std::ofstream json;
    if (!json_path.empty()) json.open(json_path);
    json << "[\n";
    std::printf("%d threads; microseconds a call, quantile %.2f\n\n", at::get_num_threads(), shown);
    std::printf(
        "| op       | dtype    | tokens |  width |        pack | torchscript |      frozen |       "
        " copy | "
        "warm kernel |   warm copy | ts / pack | frozen / pack |  GB/s | of copy | warm of copy |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    bool first = true;
    for (const char* op : {"rms_norm", "silu_mul"})
        for (at::ScalarType dtype : {at::kFloat, at::kBFloat16})
            for (int64_t width : {4096, 11008})
                for (int64_t tokens : {1, 16, 512, 4096}) {
                    const Case c{op, tokens, width, dtype};
                    if (!only_op.empty() && only_op != c.op) continue;
                    if (!only_dtype.empty() && only_dtype != dtype_name(dtype)) continue;
                    const auto timings =
                        measure(c, bench::contestants(c, op_namespace), budget, shown);
                    print_row(c, timings);
                    write_json_row(json, first, c, timings);
                    first = false;
                }
    json << "\n]\n";
    return 0;
}
