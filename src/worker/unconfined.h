#pragma once
// Tells the user which limits the system could not impose on the children of this process.

#include "worker/channel.h"

namespace twinkle::worker {

void warn_of_unconfined(const Channel& channel);

}  // namespace twinkle::worker
