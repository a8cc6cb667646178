#pragma once
// A LibTorch on this machine as its files describe it: nothing is loaded.

#include <filesystem>
#include <optional>
#include <string>

#include "target/backend.h"

namespace twinkle::target {

struct LibTorch {
    std::filesystem::path lib;  // the folder of libtorch.so
    std::string version_text;   // "2.13.0+cpu"; empty: no file says it
    std::optional<Version> version;
    Backend backend;  // cpu or CUDA, the latter with its version if a file says it
};

// None: there is no libtorch.so. Reads version.py of a Python package, or build-version of an
// unpacked archive.
std::optional<LibTorch> read_libtorch(const std::filesystem::path& lib);

}  // namespace twinkle::target
