#include "reused_memory.h"

#include <c10/core/CPUAllocator.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace bench {
namespace {

struct Block {
    size_t bytes;
    c10::DataPtr memory;
};

class ReusingAllocator : public c10::Allocator {
public:
    explicit ReusingAllocator(c10::Allocator* original) : original_(original) {}

    c10::DataPtr allocate(size_t bytes) override {
        if (!on || bytes == 0) return original_->allocate(bytes);
        const std::lock_guard lock(mutex_);
        std::vector<Block*>& kept = kept_[bytes];
        Block* block;
        if (kept.empty()) {
            block = new Block{bytes, original_->allocate(bytes)};
        } else {
            block = kept.back();
            kept.pop_back();
        }
        return {block->memory.get(), block, &ReusingAllocator::keep, c10::Device(c10::kCPU)};
    }

    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        default_copy_data(to, from, bytes);
    }

    void release() {
        const std::lock_guard lock(mutex_);
        for (auto& [bytes, blocks] : kept_)
            for (Block* block : blocks) delete block;
        kept_.clear();
    }

    bool on = false;

private:
    static void keep(void* context);

    c10::Allocator* original_;
    std::mutex mutex_;
    std::map<size_t, std::vector<Block*>> kept_;
};

// PyTorch keeps a pointer to its allocator to the end.
ReusingAllocator* allocator = nullptr;

void ReusingAllocator::keep(void* context) {
    const std::lock_guard lock(allocator->mutex_);
    auto* const block = static_cast<Block*>(context);
    allocator->kept_[block->bytes].push_back(block);
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
