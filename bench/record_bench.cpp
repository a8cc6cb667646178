// What noting a server's calls costs (TWINKLE_RECORD, twinkle/record.h): calls of a kernelized
// model with a record and without, in one process, in turns.
//
//     record_bench [MODEL [TOKENS [SECONDS]]]
//
// Without MODEL it is examples/tiny-llama/traced.pt, kernelized by the program of this build. Each
// line is the ratio of the times with and without: median and quartiles of the rounds. 1.01 is 1 %.

#include "twinkle/record.h"
#include "twinkle/twinkle.h"

#include <torch/script.h>

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr double sample_seconds = 0.005;  // short: what disturbs one is to disturb few

class Folder {
public:
    Folder() : path_(fs::temp_directory_path() / "twinkle-record-XXXXXX") {
        std::string name = path_.string();
        if (::mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("no folder can be made in " + path_.parent_path().string());
        }
        path_ = name;
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() {
        // Not remove_all: the libtorch.so of CUDA wheels exports one that crashes.
        std::error_code ignored;
        for (const char* file : {"fast.pt", "calls.jsonl"}) {
            fs::remove(path_ / file, ignored);
        }
        fs::remove(path_, ignored);
    }
    const fs::path& path() const { return path_; }

private:
    fs::path path_;
};

fs::path kernelized_example(const fs::path& folder) {
    const fs::path model = folder / "fast.pt";
    const std::string command = std::string(TWINKLE_PROGRAM) + " -q kernelize " + TWINKLE_EXAMPLES +
                                "/tiny-llama/traced.pt --project " + TWINKLE_EXAMPLES +
                                "/tiny-llama -o " + model.string() + " > /dev/null";
    if (::system(command.c_str()) != 0) {
        throw std::runtime_error("the example was not kernelized: " + command);
    }
    return model;
}

class Server {
public:
    Server(torch::jit::Module model, std::int64_t tokens, fs::path file)
        : model_(std::move(model)),
          inputs_{(at::arange(tokens, at::kLong) * 7919).remainder(255).add(1).unsqueeze(0)},
          file_(std::move(file)) {
        seconds(20);  // the first runs optimize its code
        calls_ = std::max(1, static_cast<int>(sample_seconds / (seconds(10) / 10)));
    }

    // A sample is warmed up by another one: opening the record leaves caches cold, which a server
    // has once.
    double without() {
        seconds(calls_);
        return seconds(calls_);
    }
    double recorded() {
        const twinkle::recording scope(file_);
        seconds(calls_);  // the first call notes its shapes
        return seconds(calls_);
    }
    int calls() const { return calls_; }

private:
    void call() { model_.forward(inputs_); }
    double seconds(int calls) {
        const auto start = Clock::now();
        for (int i = 0; i < calls; ++i) {
            call();
        }
        return std::chrono::duration<double>(Clock::now() - start).count();
    }

    torch::jit::Module model_;
    std::vector<c10::IValue> inputs_;
    fs::path file_;
    int calls_ = 1;
};

double quantile(const std::vector<double>& sorted, double share) {
    return sorted.at(static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1)));
}

// Without, with, with, without: what drifts slows both alike.
void measure(const torch::jit::Module& model, std::int64_t tokens, double budget,
             const fs::path& file) {
    Server server(model, tokens, file);
    std::vector<double> ratios;
    std::vector<double> plain;
    const auto end = Clock::now() + std::chrono::duration<double>(budget);
    while (ratios.size() < 10 || Clock::now() < end) {
        const double before = server.without();
        const double recorded = server.recorded() + server.recorded();
        const double after = server.without();
        ratios.push_back(recorded / (before + after));
        plain.push_back(1e6 * (before + after) / 2 / server.calls());
    }
    std::sort(ratios.begin(), ratios.end());
    std::sort(plain.begin(), plain.end());
    std::printf("%4lld tokens: %.4f (quartiles %.4f to %.4f, %zu rounds), %.1f us a call\n",
                static_cast<long long>(tokens), quantile(ratios, 0.5), quantile(ratios, 0.25),
                quantile(ratios, 0.75), ratios.size(), quantile(plain, 0.5));
}

}  // namespace

int main(int count, char** arguments) {
    try {
        const Folder folder;
        const fs::path file =
            count > 1 ? fs::path(arguments[1]) : kernelized_example(folder.path());
        torch::jit::Module model = twinkle::load(file);
        model.eval();
        const torch::NoGradGuard no_grad;
        const double seconds = count > 3 ? ::atof(arguments[3]) : 5;
        const std::vector<std::int64_t> sizes =
            count > 2 ? std::vector<std::int64_t>{::atoll(arguments[2])}
                      : std::vector<std::int64_t>{1, 16, 128};
        for (const std::int64_t tokens : sizes) {
            measure(model, tokens, seconds, folder.path() / "calls.jsonl");
        }
        return fs::exists(folder.path() / "calls.jsonl") ? 0 : 1;  // it was recorded at all
    } catch (const std::exception& error) {
        std::fprintf(stderr, "record_bench: %s\n", error.what());
        return 1;
    }
}
