#pragma once
// This process as an environment of measurements.

#include "tuning/file_store.h"

namespace twinkle::runtime {

// Threads and CUDA of LibTorch.
tuning::ProcessFacts process_facts();

// The store of a folder for this machine and process; empty: the user's.
std::shared_ptr<tuning::FileStore> own_store(const std::filesystem::path& folder = {});

}  // namespace twinkle::runtime
