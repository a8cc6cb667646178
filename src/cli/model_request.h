#pragma once
// Common to the commands on models: user-supplied files are checked here and made absolute, before
// the worker, which takes a second to start, is run.

#include <filesystem>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/worker_client.h"

namespace twinkle::cli {

// A file that must exist, as an absolute path. `role` is for messages ("model", "mapping").
std::filesystem::path existing_file(const std::string& path, const std::string& role);

// --inputs: a file, made absolute, or a specification such as "int64[1,128]:0..32000".
std::string inputs_argument(const std::string& text);

// The search path for a model's kernels: `named`, TWINKLE_KERNELS, the bundled pack.
std::vector<std::filesystem::path> kernel_folders(const std::vector<std::string>& named);

// The worker of the runtime to use. Throws Error(not_found) if none is built or installed.
WorkerProgram find_worker(Console& console);

}  // namespace twinkle::cli
