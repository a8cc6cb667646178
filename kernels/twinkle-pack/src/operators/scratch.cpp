#include "operators/scratch.h"

#include <cstddef>
#include <new>

namespace twinkle_pack {
namespace {

constexpr std::align_val_t line{64};

// More than this is kept until a call asks for less.
constexpr int64_t most_kept = int64_t{32} << 20;

class Kept {
public:
    void* of(int64_t bytes) {
        if (size_ < bytes || (size_ > most_kept && bytes <= most_kept)) {
            size_ = 0;
            memory_.reset();
            memory_ = allocate_lines(bytes);
            size_ = bytes;
        }
        return memory_.get();
    }

private:
    Lines memory_;
    int64_t size_ = 0;
};

}  // namespace

void FreeLines::operator()(char* memory) const {
    operator delete(memory, line);
}
Lines allocate_lines(int64_t bytes) {
    return Lines(static_cast<char*>(operator new(static_cast<size_t>(bytes), line)));
}

void* scratch(int64_t bytes) {
    thread_local Kept kept;
    return kept.of(bytes);
}

void* call_scratch(int64_t bytes) {
    thread_local Kept kept;
    return kept.of(bytes);
}

}  // namespace twinkle_pack
