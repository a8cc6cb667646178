// Compares the operators of the bundled pack with TorchScript, kernels-community's and a copy, on
// this CPU, in one run.
#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "measure.h"
#include "reused_memory.h"

namespace {

using bench::Case;
using bench::Timing;

constexpr const char* usage =
    "usage: pack_bench [--json FILE] [--seconds S] [--pack FOLDER] [--community LIBRARY] "
    "[--backward yes] [--op NAME] [--dtype NAME] [--tokens N]\n"
    "  --pack FOLDER        another build of the pack than that of this tree\n"
    "  --community LIBRARY  kernels-community's kernels, built by bench/community_build.py\n"
    "  --seconds S          for each case; default 0.25\n"
    "  --backward yes       the gradients instead, against those of autograd\n"
    "  --op, --dtype, --tokens: of these only; NAME and all forms of it\n";

struct Options {
    std::string json, pack = TWINKLE_PACK_DIR, community, op, dtype;
    bool backward = false;
    int64_t tokens = 0;
    double seconds = 0.25;
};

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; i += 2) {
        const std::string name = argv[i];
        if (i + 1 == argc) throw std::invalid_argument(usage);
        const char* const value = argv[i + 1];
        if (name == "--json")
            options.json = value;
        else if (name == "--pack")
            options.pack = value;
        else if (name == "--community")
            options.community = value;
        else if (name == "--op")
            options.op = value;
        else if (name == "--dtype")
            options.dtype = value;
        else if (name == "--backward")
            options.backward = std::string(value) == "yes";
        else if (name == "--tokens")
            options.tokens = std::stol(value);
        else if (name == "--seconds")
            options.seconds = std::stod(value);
        else
            throw std::invalid_argument(usage);
    }
    return options;
}

void load(const std::string& library) {
    if (!dlopen(library.c_str(), RTLD_NOW)) throw std::runtime_error(dlerror());
}

// Loads it and returns the namespace of its operators.
std::string load_pack(const std::string& folder) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
        if (file.path().extension() != ".so") continue;
        load(file.path());
        return file.path().stem().string().substr(1);
    }
    throw std::runtime_error("no library in " + folder);
}

std::string dtype_name(at::ScalarType dtype) {
    return dtype == at::kFloat ? "float32" : dtype == at::kHalf ? "float16" : "bfloat16";
}

std::vector<Case> cases(const Options& options) {
    std::vector<Case> all;
    for (const auto& operation : options.backward ? bench::gradients() : bench::operations())
        for (at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf})
            for (int64_t width : {4096, 11008})
                for (int64_t tokens : {1, 16, 512, 4096}) {
                    const std::string name = operation.name.substr(0, operation.name.find(' '));
                    const bool rotary = operation.inputs == bench::Inputs::rotary;
                    if ((options.op.empty() || options.op == name ||
                         options.op == operation.name) &&
                        (options.dtype.empty() || options.dtype == dtype_name(dtype)) &&
                        (options.tokens == 0 || options.tokens == tokens) &&
                        !(rotary && width != 4096))  // 32 heads of 128
                        all.push_back({&operation, tokens, width, dtype});
                }
    return all;
}

void print_row(const Case& c, const std::vector<Timing>& timings) {
    std::printf("%-22s %-8s %5ld x %-5ld ", c.operation->name.c_str(), dtype_name(c.dtype).c_str(),
                c.tokens, c.width);
    for (const Timing& timing : timings)
        std::printf(" | %s %.1f", timing.name.c_str(), timing.median * 1e6);
    std::printf("\n");
    std::fflush(stdout);
}

std::string json_row(const Case& c, const std::vector<Timing>& timings) {
    std::string row =
        "  {\"op\": \"" + c.operation->name + "\", \"dtype\": \"" + dtype_name(c.dtype) +
        "\", \"tokens\": " + std::to_string(c.tokens) + ", \"width\": " + std::to_string(c.width) +
        ", \"bytes\": " + std::to_string(static_cast<int64_t>(bench::bytes_moved(c))) +
        ", \"seconds\": {";
    for (size_t i = 0; i < timings.size(); ++i) {
        char numbers[100];
        std::snprintf(numbers, sizeof numbers, "[%.4g, %.4g, %.4g, %.4g]", timings[i].least,
                      timings[i].low, timings[i].median, timings[i].high);
        row += (i ? ", \"" : "\"") + timings[i].name + "\": " + numbers;
    }
    return row + "}}";
}

void run(const Options& options) {
    const std::string pack = load_pack(options.pack);
    if (!options.community.empty()) load(options.community);
    bench::install_reused_memory();
    const c10::InferenceMode inference(!options.backward);
    const at::NoGradGuard no_grad;
    std::string rows;
    std::printf("%d threads; microseconds a call, median\n", at::get_num_threads());
    for (const Case& c : cases(options)) {
        const auto timings = bench::measure(bench::contestants(c, pack, !options.community.empty()),
                                            bench::make_inputs(c), options.seconds);
        print_row(c, timings);
        rows += (rows.empty() ? "" : ",\n") + json_row(c, timings);
    }
    if (options.json.empty()) return;
    std::ofstream json(options.json);
    json << "{\"threads\": " << at::get_num_threads() << ", \"libtorch\": \"" << TORCH_VERSION
         << "\", \"compiler\": \"" << __VERSION__ << "\", \"cases\": [\n"
         << rows << "\n]}\n";
    if (!json.flush()) throw std::runtime_error("cannot write " + options.json);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        run(parse(argc, argv));
        return 0;
    } catch (const std::invalid_argument& error) {
        std::fputs(usage, stderr);
        return 2;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "pack_bench: %s\n", error.what());
        return 1;
    }
}
