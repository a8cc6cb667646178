#pragma once
// Python text changed at random.

#include <cstddef>
#include <random>
#include <string>

namespace twinkle::fuzz {

using Random = std::mt19937;

std::size_t below(Random& random, std::size_t limit);

// One change: a word, a line or a byte of text that is not empty.
void change(std::string& text, Random& random);

}  // namespace twinkle::fuzz
