#pragma once
// Changes inside the values of a JSON document, also those hidden in base64. Changes of its bytes
// alone would nearly all end at the parser.

#include <functional>
#include <random>
#include <string>
#include <string_view>

namespace twinkle::fuzz {

// Changes some bytes in any way.
using MutateBytes = std::function<std::string(std::string_view bytes)>;

// The document with one value changed, or moved to another place; `bytes` itself, changed, if it is
// no JSON.
std::string mutate_json(std::string_view bytes, std::mt19937& random, const MutateBytes& mutate);

}  // namespace twinkle::fuzz
