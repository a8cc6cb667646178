// Tries many mutated layers, and prints the outcomes.
//
//   fuzz_layers [COUNT [FIRST]]

#include "fuzz/mutated_layers.h"

#include <cstdlib>
#include <iostream>

int main(int count, char** arguments) {
    const auto number = [&](int index, unsigned long fallback) {
        return static_cast<std::uint32_t>(
            count > index ? std::strtoul(arguments[index], nullptr, 10) : fallback);
    };
    const std::uint32_t many = number(1, 10'000);
    const std::uint32_t first = number(2, 0);
    std::uint32_t compiled = 0;
    double longest = 0;
    int problems = 0;
    for (std::uint32_t i = first; i < first + many; ++i) {
        std::cerr << "\r" << i << std::flush;  // the one that ends the program
        const auto result = twinkle::fuzz::compile_mutated_layer(i);
        compiled += result.compiled ? 1 : 0;
        longest = std::max(longest, result.seconds);
        if (!result.problem.empty() || result.seconds > 1) {
            ++problems;
            std::cout << i << ": "
                      << (result.problem.empty()
                              ? "it took " + std::to_string(result.seconds) + " s"
                              : result.problem)
                      << "\n";
        }
    }
    std::cout << many << " mutated layers: " << compiled << " compiled, " << many - compiled
              << " refused, " << problems << " problems, the longest took " << longest << " s\n";
    return problems == 0 ? 0 : 1;
}
