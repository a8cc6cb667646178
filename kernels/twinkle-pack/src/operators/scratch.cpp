#include "operators/scratch.h"

#include <cstddef>
#include <memory>
#include <new>

namespace twinkle_pack {

void* scratch(int64_t bytes) {
    struct Free {
        void operator()(void* memory) const { operator delete(memory, std::align_val_t{64}); }
    };
    thread_local std::unique_ptr<void, Free> memory;
    thread_local int64_t size = 0;
    if (size < bytes) {
        size = 0;
        memory.reset();
        memory.reset(operator new(static_cast<size_t>(bytes), std::align_val_t{64}));
        size = bytes;
    }
    return memory.get();
}

}  // namespace twinkle_pack
