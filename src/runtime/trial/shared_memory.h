#pragma once
// Memory that a child process fills for its parent: it is there, whatever becomes of the child.

#include <cstddef>
#include <span>

namespace twinkle::runtime {

class SharedMemory {
public:
    // Pages cost nothing until they are written. Throws Error(failed).
    explicit SharedMemory(std::size_t bytes);
    ~SharedMemory();
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;

    std::span<std::byte> bytes() const { return {place_, size_}; }

private:
    std::byte* place_;
    std::size_t size_;
};

}  // namespace twinkle::runtime
