#pragma once
// The sources of the operators that a model calls: LibTorch, the kernels that the model names,
// those of the mapping, or a build in a folder that the user has chosen. Nothing of a kernel is
// loaded.

#include "base/json.h"
#include "runtime/inspect/saved_code.h"
#include "runtime/kernels/kernel_finder.h"
#include "twinkle/load.h"
#include "twinkle/mapping.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct NeededKernel {
    RequiredKernel required;
    std::optional<MappedKernel> found;  // the very build that the model names
    std::string because;                // why not
};

struct NeededOperator {
    std::string name;  // "ns::op"
    std::size_t calls = 0;
    bool registered = false;             // LibTorch has it
    std::optional<MappedKernel> kernel;  // else: the build that has it, if one is known
    std::string schema;                  // with the kernel
    std::string because;                 // how that kernel was found, or that none was
};

class OperatorSources {
public:
    OperatorSources(const std::filesystem::path& model, const std::vector<RequiredKernel>& required,
                    const Mapping* mapping, const KernelFinder& finder);

    const std::vector<NeededKernel>& kernels() const { return kernels_; }

    // The operators of the code that are not LibTorch's `aten` or `prim`, and those of `aten` that
    // this LibTorch does not have.
    std::vector<NeededOperator> operators(const SavedCode& code);

private:
    struct Source {
        MappedKernel kernel;
        std::string because;
    };
    const std::vector<Source>& sources_of(const std::string& op_namespace);

    const Mapping* mapping_;
    const KernelFinder& finder_;
    std::vector<NeededKernel> kernels_;
    std::map<std::string, std::vector<Source>> sources_;
};

base::Json to_json(const NeededKernel& kernel);
base::Json to_json(const NeededOperator& op);

}  // namespace twinkle::runtime
