#include "hub/secret.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <new>

namespace twinkle::hub {

// Has pages of its own, so that they can be excluded from core dumps.
class Secret::Buffer {
public:
    explicit Buffer(std::string_view value) : size_(value.size()) {
        const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        mapped_ = (size_ + page - 1) / page * page;
        memory_ =
            ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory_ == MAP_FAILED) {
            throw std::bad_alloc();
        }
        ::madvise(memory_, mapped_, MADV_DONTDUMP);
        std::memcpy(memory_, value.data(), size_);
    }
    ~Buffer() {
        ::explicit_bzero(memory_, mapped_);
        ::munmap(memory_, mapped_);
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    std::string_view view() const { return {static_cast<const char*>(memory_), size_}; }

private:
    void* memory_ = nullptr;
    std::size_t size_ = 0;
    std::size_t mapped_ = 0;
};

Secret::Secret(std::string_view value) {
    if (!value.empty()) {
        buffer_ = std::make_shared<const Buffer>(value);
    }
}

std::string_view Secret::reveal() const {
    return buffer_ ? buffer_->view() : std::string_view();
}

void wipe(char* bytes, std::size_t size) {
    ::explicit_bzero(bytes, size);
}

void refuse_core_dumps() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_CORE, &limit) == 0) {
        limit.rlim_cur = 0;
        ::setrlimit(RLIMIT_CORE, &limit);
    }
}

}  // namespace twinkle::hub
