#pragma once
// The kernels of this process: each build is verified and loaded once, for good.

#include "twinkle/load.h"
#include "twinkle/mapping.h"

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct LoadedKernel {
    MappedKernel kernel;
    std::string build_id;
    std::map<std::string, std::string> sources;  // path → Python text, as verified
};

// Verifies, opens the operator libraries, keeps the sources. A build that is loaded already is
// returned as it is; another build under the same namespace is refused. Thread-safe.
std::shared_ptr<const LoadedKernel> load_kernel(const MappedKernel& kernel);

// All of this process, in the order of loading. Thread-safe.
std::vector<std::shared_ptr<const LoadedKernel>> loaded_kernels();
// Whether load_kernel() has loaded this build, from wherever.
bool is_loaded(const std::string& build_id);

// Finds and loads what a model names; `model` is for messages.
void load_named_kernels(const std::vector<RequiredKernel>& required,
                        const std::filesystem::path& model, const LoadOptions& options);

}  // namespace twinkle::runtime
