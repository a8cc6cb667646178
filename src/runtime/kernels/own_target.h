#pragma once
// The target that this process is: the LibTorch it has loaded, on this machine.

#include "target/target.h"

namespace twinkle::runtime {

// Asked of the machine once. Throws Error(malformed) where it cannot be told.
const target::Target& own_target();

}  // namespace twinkle::runtime
