#include "base/freed_memory.h"

#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace twinkle::base {

namespace {

// Thresholds follow blocks of up to 32 MiB, in which malloc has words of its own, rounded up to
// pages (64 KiB at most).
constexpr std::size_t largest = (std::size_t{32} << 20) - (std::size_t{64} << 10);

}  // namespace

void keep_freed_memory() {
    void* volatile block = std::malloc(largest);  // never touched: no page of it exists
    std::free(block);
}

void return_freed_memory() {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

}  // namespace twinkle::base
