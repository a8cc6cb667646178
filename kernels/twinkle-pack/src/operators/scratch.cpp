#include "operators/scratch.h"

#include <cstddef>
#include <memory>
#include <new>

namespace twinkle_pack {
namespace {

// More than this is kept until a call asks for less.
constexpr int64_t most_kept = int64_t{32} << 20;

class Kept {
public:
    void* of(int64_t bytes) {
        if (size_ < bytes || (size_ > most_kept && bytes <= most_kept)) {
            size_ = 0;
            memory_.reset();
            memory_.reset(operator new(static_cast<size_t>(bytes), std::align_val_t{64}));
            size_ = bytes;
        }
        return memory_.get();
    }

private:
    struct Free {
        void operator()(void* memory) const { operator delete(memory, std::align_val_t{64}); }
    };
    std::unique_ptr<void, Free> memory_;
    int64_t size_ = 0;
};

}  // namespace

void* scratch(int64_t bytes) {
    thread_local Kept kept;
    return kept.of(bytes);
}

void* call_scratch(int64_t bytes) {
    thread_local Kept kept;
    return kept.of(bytes);
}

}  // namespace twinkle_pack
