#pragma once
// The mapping that a registry means for one model: only kernels that the model can use are located.

#include "runtime/registry/registrations.h"
#include "runtime/selection/selection.h"
#include "twinkle/error.h"
#include "twinkle/mapping.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct RegisteredMapping {
    Mapping mapping;
    // By layer of the mapping; points into the registrations.
    std::vector<std::vector<const InstanceCondition*>> conditions;
    // Kernels that could not be had, by their name in the mapping: loading them throws this.
    std::map<std::string, Error> failures;
    // C++ functions, by the operator name that candidates use.
    std::map<std::string, Implementation> natives;
    std::vector<std::string> warnings;

    // Whether every condition on this layer of the mapping holds for an instance.
    bool admits(const MappedLayer& layer, const torch::jit::Module& instance) const;
};

// `classes` and `functions`: full names of all classes in the model, and of all functions that it
// calls. With `may_fail`, a kernel that cannot be had is a failure in the result, else its error is
// thrown.
RegisteredMapping mapping_for(const Registrations& registrations,
                              const std::set<std::string>& classes,
                              const std::set<std::string>& functions,
                              const SelectionContext& context, bool may_fail);

}  // namespace twinkle::runtime
