#pragma once
// Memory without page faults: keeps what PyTorch frees and reuses it for the next tensor of that
// size, as a server's allocator (jemalloc, tcmalloc) would.

namespace bench {

// Replaces PyTorch's allocator for the rest of the process; off at first.
void install_reused_memory();

void reuse_memory(bool on);

// Frees the memory that is kept.
void release_reused_memory();

}  // namespace bench
