#pragma once
// What the commands with a model have in common: the files that a user names are checked here and
// made absolute, before the worker, which costs a second to start, is asked.

#include <filesystem>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/worker_client.h"

namespace twinkle::cli {

// A file that must be there: absolute. `role` is for messages ("model", "mapping").
std::filesystem::path existing_file(const std::string& path, const std::string& role);

// --inputs: a file, made absolute, or a specification such as "int64[1,128]:0..32000".
std::string inputs_argument(const std::string& text);

// Where a model's kernels are looked for: `named`, TWINKLE_KERNELS, the bundled pack.
std::vector<std::filesystem::path> kernel_folders(const std::vector<std::string>& named);

// The worker of the runtime to use. Throws Error(not_found) where none is built or installed.
WorkerProgram find_worker(Console& console);

}  // namespace twinkle::cli
