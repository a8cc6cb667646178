#include "memory.h"

#include <cstdlib>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace twinkle_pack {
namespace {

int64_t cache_bytes() {
    if (const char* wanted = std::getenv("TWINKLE_PACK_CACHE"); wanted && *wanted)
        return std::strtoll(wanted, nullptr, 10);
#ifdef _SC_LEVEL3_CACHE_SIZE
    if (const long size = sysconf(_SC_LEVEL3_CACHE_SIZE); size > 0) return size;
#endif
    return int64_t{32} << 20;
}

}  // namespace

void prefer_huge_pages(void* memory, int64_t bytes) {
#ifdef __linux__
    constexpr uintptr_t page = uintptr_t{1} << 21;
    if (bytes < static_cast<int64_t>(4 * page)) return;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(memory);
    const uintptr_t end = begin + static_cast<uintptr_t>(bytes);
    const uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
    madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

bool exceeds_cache(int64_t bytes_moved) {
    static const int64_t cache = cache_bytes();
    return bytes_moved > cache;
}

}  // namespace twinkle_pack
