// Tries many mutated formulas, and prints the outcomes.
//
//   fuzz_formulas [COUNT [FIRST]]

#include "fuzz/mutated_formulas.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>

int main(int count, char** arguments) {
    const auto number = [&](int index, unsigned long fallback) {
        return static_cast<std::uint32_t>(
            count > index ? std::strtoul(arguments[index], nullptr, 10) : fallback);
    };
    const std::uint32_t many = number(1, 10'000);
    const std::uint32_t first = number(2, 0);
    std::size_t compiled = 0;
    std::size_t refused = 0;
    std::size_t found = 0;
    double longest = 0;
    int problems = 0;
    for (std::uint32_t i = first; i < first + many; ++i) {
        std::cerr << "\r" << i << std::flush;  // the one that ends the program
        const auto result = twinkle::fuzz::try_mutated_formulas(i);
        compiled += result.compiled;
        refused += result.refused;
        found += result.found;
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
    std::cout << many << " mutated files: " << compiled << " formulas compiled, " << refused
              << " refused, " << found << " places found, " << problems
              << " problems, the longest took " << longest << " s\n";
    return problems == 0 ? 0 : 1;
}
