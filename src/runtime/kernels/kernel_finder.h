#pragma once
// Finds the builds that a model names, in folders that the user has chosen. A model holds no path:
// it can only get what the user had put there already.

#include "twinkle/load.h"
#include "twinkle/mapping.h"

#include <filesystem>
#include <vector>

namespace twinkle::runtime {

class KernelFinder {
public:
    // `first`, then TWINKLE_KERNELS, the bundled pack, the Hub cache.
    explicit KernelFinder(const std::vector<std::filesystem::path>& first);

    // The build with this namespace and id. Throws Error(not_found) if there is none (the searched
    // folders are named), Error(verification) if there are only others under the same namespace.
    MappedKernel find(const RequiredKernel& required, const std::filesystem::path& model) const;

private:
    std::vector<std::filesystem::path> folders_;
};

}  // namespace twinkle::runtime
