#pragma once
// Packages that AOTInductor compiled (.pt2), for programs that run them: torch's own loader, with
// the operators that a package calls made there first. Not part of twinkle.h, because of its
// header.
//
// A package is native code, which LibTorch unpacks and runs: load those alone that you trust.

#include "twinkle/api.h"
#include "twinkle/load.h"

#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <filesystem>
#include <memory>

namespace twinkle {

// Finds, verifies and loads the kernels whose operators the package calls: those in
// options.kernel_dirs, TWINKLE_KERNELS and the bundled pack; nothing of the Hub cache, which a
// package does not name by hash. For whoever calls AOTIModelPackageLoader himself. Throws Error:
// malformed (no such package), not_found (an operator that nobody has), refused (no build of its
// kernel runs here).
TWINKLE_API void load_package_kernels(const std::filesystem::path& package,
                                      const LoadOptions& options = {});

// The same, then the loader: `options.model` names one of several models, the index of
// `options.device` the GPU (LibTorch before 2.8: the current one, an index above 0 is
// Error(refused)). A package for another CPU or GPU is Error(refused) before its code is
// opened.
TWINKLE_API std::unique_ptr<torch::inductor::AOTIModelPackageLoader> load_package(
    const std::filesystem::path& package, const LoadOptions& options = {});

}  // namespace twinkle
