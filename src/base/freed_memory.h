#pragma once

namespace twinkle::base {

// Lets the process keep what it frees, up to 64 MiB, for what it allocates next: the results of a
// model's call are freed before the next call, and pages that went back to the system come again
// one by one, cleared. glibc decides that by thresholds that grow with the blocks that a program
// frees (mallopt(3), M_MMAP_THRESHOLD); this lets them grow at once to where they end. Without
// effect with another malloc, and where the program or MALLOC_TRIM_THRESHOLD_ has set them.
// Thread-safe.
void keep_freed_memory();

// Gives back to the system what the process has freed and kept, where much of it will not be needed
// again: all of it, also what other threads would have used again. glibc does that by itself only
// at the end of its heap. Thread-safe.
void return_freed_memory();

}  // namespace twinkle::base
