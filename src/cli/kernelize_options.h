#pragma once
// The values of --mode, --device and --fallback as the worker expects them.

#include <string>
#include <vector>

namespace twinkle::cli {

// "train" → "training", "compile" → "inference+compile". Throws Error(malformed).
std::string normalized_mode(const std::string& text);

// "true", "all", "false", or names separated by commas, checked.
std::vector<std::string> fallback_words(const std::string& text);

// The device of a model: cpu, cuda, cuda:1, … Throws Error(malformed).
std::string checked_device(const std::string& text);

}  // namespace twinkle::cli
