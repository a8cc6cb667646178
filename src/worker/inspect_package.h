#pragma once
// inspect for packages of AOTInductor: what they say of themselves, and who has the operators that
// they call. Nothing is loaded.

#include "worker/commands.h"

namespace twinkle::worker {

base::Json inspect_package(const Request& request, const Channel& channel);

}  // namespace twinkle::worker
