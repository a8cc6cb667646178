#pragma once
// Options that commands on models share, and the values of --mode, --device and --fallback in the
// form that the worker expects.

#include <string>
#include <vector>

#include "base/json.h"
#include "cli/command.h"
#include "cli/console.h"
#include "protocol/request.h"

namespace twinkle::cli {

Option map_option();
Option mode_option();
Option device_option();
Option dtype_option();
Option inputs_option();
Option only_option();
Option exclude_option();
Option allow_io_option();
Option model_name_option();

// Adds --only, --exclude, --mode, --device and --allow-io to a request.
void add_choice_of_sites(protocol::Request& request, const Arguments& arguments);

void say_warnings(const base::Json& report, Console& console);

// "train" → "training", "compile" → "inference+compile". Throws Error(malformed).
std::string checked_mode(const std::string& text);

// "true", "all", "false", or names separated by commas, checked.
std::vector<std::string> checked_fallbacks(const std::string& text);

// A model's device: cpu, cuda, cuda:1, … Throws Error(malformed).
std::string checked_device(const std::string& text);
// bfloat16, float16 or float32. Throws Error(malformed).
std::string checked_dtype(const std::string& text);

}  // namespace twinkle::cli
