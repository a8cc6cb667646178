// Loads a model, kernelizes it and saves it, and prints as JSON how long each step took:
// kernelize_steps MODEL OUTPUT [MAPPING]. Without a mapping it is LibTorch alone: torch::jit::load
// and Module::save.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "twinkle/twinkle.h"

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

long peak_kib() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

void run(const char* input, const char* output, const char* mapping) {
    auto start = std::chrono::steady_clock::now();
    auto model = mapping == nullptr ? torch::jit::load(input) : twinkle::load(input);
    const double load = seconds_since(start);

    start = std::chrono::steady_clock::now();
    const int replaced =
        mapping == nullptr
            ? 0
            : static_cast<int>(twinkle::kernelize(model, twinkle::Mapping::load(mapping))
                                   .count(twinkle::SiteStatus::replaced));
    const double kernelize = seconds_since(start);
    const long before_save = peak_kib();

    start = std::chrono::steady_clock::now();
    model.save(output);
    std::printf(
        "{\"load\": %.6f, \"kernelize\": %.6f, \"save\": %.6f, \"replaced\": %d, "
        "\"kib_before_save\": %ld, \"kib\": %ld}\n",
        load, kernelize, seconds_since(start), replaced, before_save, peak_kib());
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 3) {
        std::fputs("kernelize_steps MODEL OUTPUT [MAPPING]\n", stderr);
        return 2;
    }
    try {
        run(arguments[1], arguments[2], count > 3 ? arguments[3] : nullptr);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
