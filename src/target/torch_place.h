#pragma once
// Finds the LibTorch of a runtime on this machine: packages do not know its place when they are
// built.

#include <filesystem>
#include <vector>

#include "target/libtorch.h"
#include "target/machine.h"
#include "target/runtime.h"

namespace twinkle::target {

// How well a runtime serves a LibTorch: 3 built for its version and backend, 2 for another release
// of its CUDA, 1 for its version alone; 0 not at all. A runtime uses nothing of CUDA itself, so one
// serves the CPU and the CUDA builds of a version.
int fit(const Runtime& runtime, const LibTorch& torch);

// The runtime as it is with that LibTorch: its backend and torch_lib.
Runtime with_libtorch(Runtime runtime, const LibTorch& torch);

// Lists those that there are, the first to be used first: TWINKLE_TORCH (an unpacked libtorch, or
// site-packages/torch) alone where it is set; else those of the Python environment that twinkle is
// installed in, of the active one (VIRTUAL_ENV, CONDA_PREFIX), and of the system's usual places.
std::vector<LibTorch> libtorches(const Machine& machine);

// The folder of libtorch.so: of TWINKLE_TORCH, of runtime.json, else the first of libtorches() that
// the runtime serves. Throws Error(not_found) with the places that were searched, Error(refused) if
// TWINKLE_TORCH is another LibTorch.
std::filesystem::path find_torch_lib(const Runtime& runtime, const Machine& machine);

}  // namespace twinkle::target
