#pragma once
// Finds the builds that a model names, in folders that the user has chosen. A model holds no path:
// it can only get what the user had put there already.

#include "twinkle/load.h"
#include "twinkle/mapping.h"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

class KernelFinder {
public:
    // `first`, then TWINKLE_KERNELS, the bundled pack, the Hub cache.
    // `explain` is told of every build that is looked at.
    explicit KernelFinder(const std::vector<std::filesystem::path>& first,
                          std::function<void(const std::string&)> explain = {});

    // The build with this namespace and id. Throws Error(not_found) if there is none (the searched
    // folders are named), Error(verification) if there are only others under the same namespace.
    MappedKernel find(const RequiredKernel& required, const std::filesystem::path& model) const;

    // Everywhere, or in the folders alone that the user has chosen: not in the Hub cache.
    enum class Search { everywhere, chosen };
    // Every whole build with these operators, in the order of the folders. Its name is that of its
    // repository, as far as the folders tell.
    std::vector<MappedKernel> builds_of(const std::string& op_namespace,
                                        Search search = Search::everywhere) const;

    const std::vector<std::filesystem::path>& folders() const { return folders_; }

private:
    struct Place {
        std::filesystem::path build;
        bool chosen = true;
    };
    using Index = std::map<std::string, std::vector<Place>>;
    void explain(const std::string& attempt) const;
    const Index& index() const;

    std::vector<std::filesystem::path> folders_;
    std::function<void(const std::string&)> explain_;
    mutable std::optional<Index> index_;  // operator namespace → builds; read when first asked for
};

}  // namespace twinkle::runtime
