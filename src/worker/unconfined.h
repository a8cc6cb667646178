#pragma once
// What the system could not withhold from the children of this process, said to the user.

#include "worker/channel.h"

namespace twinkle::worker {

void warn_of_unconfined(const Channel& channel);

}  // namespace twinkle::worker
