#pragma once
// The same work on many things, on all cores.

#include <cstddef>
#include <functional>

namespace twinkle::base {

// Calls work(0) … work(count - 1), each once, in no order, from up to `threads` threads (0: as many
// as there are cores); returns when all are done. After an exception nothing new is begun, and the
// first one comes out.
void parallel_for(std::size_t count, unsigned threads,
                  const std::function<void(std::size_t)>& work);

}  // namespace twinkle::base
