#pragma once
// Builds hold code for one system and one processor.

#include "twinkle/mapping.h"

namespace twinkle::runtime {

// Throws Error(refused) for a mapping that was made for another system or processor than this.
void require_own_system(const Mapping& mapping);
// The same for a build, by the name of its variant.
void require_own_system(const MappedKernel& kernel);

}  // namespace twinkle::runtime
