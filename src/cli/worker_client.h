#pragma once
// The client's end of the worker's pipe: starts the worker of the right LibTorch, shows its
// progress, and turns its end, whatever it is, into a result or one Error.

#include <filesystem>

#include "base/json.h"
#include "cli/console.h"
#include "protocol/request.h"

namespace twinkle::cli {

struct WorkerProgram {
    std::filesystem::path program;    // libexec/twinkle/torch2.13-cpu/twinkle-worker
    std::filesystem::path torch_lib;  // the folder of LibTorch's libraries
};

// Sends the request and waits. Errors that the worker reports are rethrown unchanged; a worker
// that dies while it loads a kernel is Error(refused) naming the kernel, any other death
// Error(failed).
base::Json run_worker(const WorkerProgram& worker, const protocol::Request& request,
                      Console& console);

}  // namespace twinkle::cli
