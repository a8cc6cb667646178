#pragma once
// What the options of commands on models choose, checked and in the form that the worker expects.

#include <string>
#include <vector>

#include "cli/command.h"
#include "protocol/request.h"

namespace twinkle::cli {

// Adds --only, --exclude, --mode, --device and --allow-io to a request.
void add_choice_of_sites(protocol::Request& request, const Arguments& arguments);

// "train" → "training", "compile" → "inference+compile". Throws Error(malformed).
std::string checked_mode(const std::string& text);

// "true", "all", "false", or names separated by commas, checked.
std::vector<std::string> checked_fallbacks(const std::string& text);

// A model's device: cpu, cuda, cuda:1, … Throws Error(malformed).
std::string checked_device(const std::string& text);
// bfloat16, float16 or float32. Throws Error(malformed).
std::string checked_dtype(const std::string& text);
const std::vector<std::string>& dtype_names();

}  // namespace twinkle::cli
