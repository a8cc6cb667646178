#pragma once
// build.toml: what a source project tells kernel-builder to build. Editions before the newest are
// read as far as they agree with it.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kernel/check_build.h"
#include "kernel/finding.h"

namespace twinkle::kernel {

inline constexpr int newest_edition = 5;

struct KernelSection {
    std::string name;
    std::string backend;
    std::vector<std::string> capabilities;  // cuda-capabilities or rocm-archs
    std::vector<std::string> sources;
    int line = 0;
};

struct BuildToml {
    std::string name;
    std::optional<std::int64_t> version;
    std::int64_t edition = 0;
    std::string license;
    std::string repo_id;
    std::vector<std::string> backends;
    std::vector<std::string> python_depends;  // of every backend
    std::string framework;                    // "torch", "torch-noarch", "tvm-ffi"
    std::vector<std::string> sources;         // of the framework's section
    std::vector<std::pair<std::string, std::string>> stable_abi;  // backend, or "", → version
    std::vector<KernelSection> kernels;

    std::string package_name() const;  // "layer_norm"
};

// None, and a finding, where it is no TOML or lacks what it must have.
std::optional<BuildToml> read_build_toml(const std::filesystem::path& file, Findings& findings);

// Are the files there that it names?
void check_project_files(const BuildToml& project, const std::filesystem::path& folder,
                         Findings& findings);

// A build of the project against what it describes. `shown` is for messages: "build/<variant>/".
void compare_with_build(const BuildToml& project, const std::string& variant,
                        const CheckedBuild& build, const std::string& shown, Findings& findings);

}  // namespace twinkle::kernel
