#pragma once
// Registrations grouped by the instances that they apply to.

#include "project/manifest.h"
#include "runtime/registry/registrations.h"

#include <vector>

namespace twinkle::runtime {

// Instances of some classes, under some conditions, with their registrations: first those for one
// kind of device, then those for every device.
struct LayerShape {
    MappedLayer bound;                                 // without candidates
    std::vector<const InstanceCondition*> conditions;  // point into the registrations
    std::vector<const LayerKernel*> kernels;
    std::size_t call = 0;  // that bound the classes; 0: a preset does
};

// Later bindings come first, so that they take the class from earlier ones. `presets` give classes
// to kernel names for which the program gives none. A kernel name with a class and no registration
// is a shape without kernels.
std::vector<LayerShape> layer_shapes(const Registrations& registrations,
                                     const std::vector<project::LayerBinding>& presets);

}  // namespace twinkle::runtime
