#include "base/huge_pages.h"

#include <cstdint>
#include <fstream>
#include <string>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace twinkle::base {

void prefer_huge_pages(void* memory, std::size_t bytes) {
#ifdef __linux__
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    const std::uintptr_t first = (begin + huge_page - 1) / huge_page * huge_page;
    const std::uintptr_t last = (begin + bytes) / huge_page * huge_page;
    if (first < last) {
        ::madvise(static_cast<char*>(memory) + (first - begin), last - first, MADV_HUGEPAGE);
    }
#else
    (void)memory, (void)bytes;
#endif
}

bool has_huge_pages() {
    std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
    std::string line;
    return std::getline(file, line) && line.find("[never]") == std::string::npos;
}

}  // namespace twinkle::base
