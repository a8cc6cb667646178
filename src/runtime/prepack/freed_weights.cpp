#include "runtime/prepack/freed_weights.h"

#include "base/freed_memory.h"

namespace twinkle::runtime {

FreedWeights::~FreedWeights() {
    if (bytes_ > 0) {
        base::return_freed_memory();
    }
}

void FreedWeights::add(std::size_t bytes) {
    constexpr std::size_t much = std::size_t{64} << 20;
    bytes_ += bytes;
    if (bytes_ >= much) {
        base::return_freed_memory();
        bytes_ = 0;
    }
}

}  // namespace twinkle::runtime
