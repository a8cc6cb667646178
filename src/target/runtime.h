#pragma once
// The built runtimes (libexec/twinkle/torch2.13-cpu/…): one per LibTorch, each described by the
// runtime.json that its build wrote. Without loading LibTorch, twinkle knows no more of it.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "target/backend.h"
#include "target/machine.h"

namespace twinkle::target {

struct Runtime {
    std::string name;  // of its folder: "torch2.13-cpu"
    std::filesystem::path folder;
    std::string torch_version;  // "2.13.0"
    Version torch;
    Backend backend;
    bool cxx11 = true;
    // The folder of libtorch.so at build time; empty in packages. choose_runtime() finds it.
    std::filesystem::path torch_lib;
    std::filesystem::path worker;
    std::filesystem::path library;  // libtwinkle.so
};

// The places of twinkle's parts, relative to the executable; the same in the build tree.
struct Installation {
    std::filesystem::path libexec;  // TWINKLE_LIBEXEC, else ../libexec/twinkle
    std::filesystem::path kernels;  // ../lib/twinkle/kernels
    std::filesystem::path presets;  // ../share/twinkle/presets
};
Installation installation(const Machine& machine);

// Every runtime below `libexec`, best first: newest LibTorch, then the backend that this machine
// has hardware for. Throws Error(malformed) for a runtime.json that cannot be read.
std::vector<Runtime> find_runtimes(const std::filesystem::path& libexec, const Machine& machine);

// The runtime to use: the one that TWINKLE_RUNTIME names; else one whose LibTorch is where it was
// at build time; else the best for the first LibTorch on this machine that any serves; else the
// first of all. Its backend and torch_lib are those of the LibTorch that it will run with, where
// that is found. None: there are none. Throws Error(not_found) if TWINKLE_RUNTIME names one that
// does not exist.
std::optional<Runtime> choose_runtime(const Machine& machine);

}  // namespace twinkle::target
