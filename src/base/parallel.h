#pragma once
// Runs the same work on many things, on all cores.

#include <cstddef>
#include <functional>

namespace twinkle::base {

// Calls work(0) … work(count - 1), each once, in any order, on up to `threads` threads (0: one per
// core); returns when all are done. After an exception no further call starts, and the first one is
// rethrown.
void parallel_for(std::size_t count, unsigned threads,
                  const std::function<void(std::size_t)>& work);

}  // namespace twinkle::base
