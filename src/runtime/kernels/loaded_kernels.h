#pragma once
// The kernels of this process: each build is verified and loaded once, for good.

#include "twinkle/mapping.h"

#include <map>
#include <memory>
#include <string>

namespace twinkle::runtime {

struct LoadedKernel {
    MappedKernel kernel;
    std::string build_id;
    std::map<std::string, std::string> sources;  // path → Python text, as verified
};

// Verifies, opens the operator libraries, keeps the sources. A build that is loaded already is
// returned as it is; another build under the same namespace is refused. Thread-safe.
std::shared_ptr<const LoadedKernel> load_kernel(const MappedKernel& kernel);

}  // namespace twinkle::runtime
