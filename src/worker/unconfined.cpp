#include "worker/unconfined.h"

#include "runtime/trial/sandbox.h"

namespace twinkle::worker {

void warn_of_unconfined(const Channel& channel) {
    for (const std::string& text : runtime::unconfined_so_far()) {
        channel.warning(text);
    }
}

}  // namespace twinkle::worker
