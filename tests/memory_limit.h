#pragma once
// How much memory a test may take.

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace twinkle::tests {

// The process may take so many bytes more than it has. Sanitizers reserve more than that.
struct MemoryLimit {
    rlimit before{};
    explicit MemoryLimit(std::uint64_t more) {
        std::uint64_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        getrlimit(RLIMIT_AS, &before);
        rlimit limit = before;
        limit.rlim_cur = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + more;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        setrlimit(RLIMIT_AS, &limit);
#endif
    }
    MemoryLimit(const MemoryLimit&) = delete;
    MemoryLimit& operator=(const MemoryLimit&) = delete;
    ~MemoryLimit() { setrlimit(RLIMIT_AS, &before); }
};

}  // namespace twinkle::tests
