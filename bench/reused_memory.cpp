#include "reused_memory.h"

#include <c10/core/CPUAllocator.h>

#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace bench {
namespace {

// PyTorch also allocates through raw pointers, and frees by address alone.
class ReusingAllocator : public c10::Allocator {
public:
    explicit ReusingAllocator(c10::Allocator* original) : original_(original) {}

    c10::DataPtr allocate(size_t bytes) override {
        if (!on || bytes == 0) return original_->allocate(bytes);
        const std::lock_guard lock(mutex_);
        std::vector<void*>& kept = kept_[bytes];
        void* memory;
        if (kept.empty()) {
            memory = original_->raw_allocate(bytes);
            sizes_[memory] = bytes;
        } else {
            memory = kept.back();
            kept.pop_back();
        }
        return {memory, memory, raw_deleter(), c10::Device(c10::kCPU)};
    }

    c10::DeleterFnPtr raw_deleter() const override { return &ReusingAllocator::free; }

    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        default_copy_data(to, from, bytes);
    }

    void release() {
        const std::lock_guard lock(mutex_);
        for (auto& [bytes, blocks] : kept_)
            for (void* memory : blocks) {
                sizes_.erase(memory);
                original_->raw_deallocate(memory);
            }
        kept_.clear();
    }

    bool on = false;

private:
    static void free(void* memory);

    c10::Allocator* original_;
    std::mutex mutex_;
    std::map<size_t, std::vector<void*>> kept_;
    std::unordered_map<void*, size_t> sizes_;  // of memory in use or kept
};

// PyTorch keeps a pointer to its allocator for the life of the process.
ReusingAllocator* allocator = nullptr;

void ReusingAllocator::free(void* memory) {
    const std::lock_guard lock(allocator->mutex_);
    const auto known = allocator->sizes_.find(memory);
    if (known == allocator->sizes_.end())
        allocator->original_->raw_deallocate(memory);
    else
        allocator->kept_[known->second].push_back(memory);
}

}  // namespace

void install_reused_memory() {
    allocator = new ReusingAllocator(c10::GetCPUAllocator());
    c10::SetCPUAllocator(allocator, 1);
}

void reuse_memory(bool on) {
    allocator->on = on;
}

void release_reused_memory() {
    allocator->release();
}

}  // namespace bench
