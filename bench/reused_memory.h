#pragma once
// Memory that is there already: no page faults. What PyTorch frees is kept and given out again for
// the next tensor of that size, as a server's allocator (jemalloc, tcmalloc) would.

namespace bench {

// Takes the place of PyTorch's allocator, for the rest of the process; off at first.
void install_reused_memory();

void reuse_memory(bool on);

// Gives back what is kept.
void release_reused_memory();

}  // namespace bench
