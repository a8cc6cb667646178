#include "runtime/trial/shared_memory.h"

#include "twinkle/error.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace twinkle::runtime {

SharedMemory::SharedMemory(std::size_t bytes) : size_(std::max<std::size_t>(bytes, 1)) {
    void* place = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) {
        throw Error(ErrorCode::failed, {.what = "no memory can be shared with a child process",
                                        .where = {},
                                        .why = std::strerror(errno),
                                        .hint = "the model may be too large for this machine"});
    }
    place_ = static_cast<std::byte*>(place);
}

SharedMemory::~SharedMemory() {
    ::munmap(place_, size_);
}

}  // namespace twinkle::runtime
