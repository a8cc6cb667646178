#pragma once
// Regions that change how their nodes run, and not what is computed by whom (torch.no_grad,
// autocast), become part of the graph around them: so the modules inside of them are found.

#include "runtime/exported/program.h"

namespace twinkle::runtime::exported {

// Puts the nodes of the regions in their place, under names of their own; what leaves a region
// without gradients is detached, where gradients could flow. Takes out what only asserts what the
// exporter knew (dtypes and devices, ranges of symbols), and sizes that nobody uses. Throws
// Error(refused) for what it cannot keep.
void flatten_regions(Program& program);

}  // namespace twinkle::runtime::exported
