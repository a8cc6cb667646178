#pragma once
// Notes in a file which calls the kernelized models of this process get, and its executors: their
// shapes and dtypes, no data. Models are seen by LibTorch's callback for calls of TorchScript
// methods from outside: they and the programs that load them stay as they are, and a call that is
// known already costs a hash of its shapes.

#include "twinkle/invocation.h"

#include <filesystem>

namespace twinkle::runtime {

// Records until end_record(). Throws Error: failed (it cannot be written), refused (another file is
// recorded to).
void begin_record(const std::filesystem::path& file);
void end_record();
bool is_recorded_to_file();
// Notes an executor's call. Does nothing if no file is recorded to.
void note_in_record(const Invocation& invocation);

// Begins the record that TWINKLE_RECORD names, once in a process. What fails is said on stderr.
void record_as_environment_says();
// Serves processes that measure or compare models themselves.
void leave_records_off();

}  // namespace twinkle::runtime
