#pragma once
// twinkle tune --devices: one run for each GPU, side by side, which share the work and the store.

#include "cli/command.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace twinkle::cli {

Option devices_option();

// The GPUs that are meant, by number; one of them at least. Empty: those that the model is for, as
// ever. Throws Error(malformed).
std::vector<std::uint64_t> chosen_gpus(const Arguments& arguments);

// Measures on these GPUs, a share on each. Throws Error(failed) if one of the runs fails.
void tune_on_each(const std::vector<std::uint64_t>& gpus, const Arguments& arguments,
                  Console& console);

}  // namespace twinkle::cli
