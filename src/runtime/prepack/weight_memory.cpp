#include "runtime/prepack/weight_memory.h"

#include "base/huge_pages.h"

#include <algorithm>
#include <cstdint>

namespace twinkle::runtime {

namespace {

constexpr std::size_t line = 64;
constexpr std::size_t block_size = 8 * base::huge_page;

std::size_t rounded(std::size_t bytes, std::size_t to) {
    return (bytes + to - 1) / to * to;
}

}  // namespace

at::Tensor WeightMemory::copy(const at::Tensor& tensor) {
    const std::size_t bytes = rounded(tensor.nbytes(), line);
    if (used_ + bytes > size_) {
        const std::size_t wanted = std::max(block_size, rounded(bytes, base::huge_page));
        block_ = at::empty({static_cast<std::int64_t>(wanted + base::huge_page)}, at::kByte);
        base::prefer_huge_pages(block_.data_ptr(), block_.nbytes());
        const auto begin = reinterpret_cast<std::uintptr_t>(block_.data_ptr());
        used_ = rounded(begin, base::huge_page) - begin;
        size_ = used_ + wanted;
    }
    char* const place = static_cast<char*>(block_.data_ptr()) + used_;
    used_ += bytes;
    // A storage of its own: a saved model has a record of each tensor's whole storage. It can
    // become larger elsewhere, as a buffer may.
    const c10::Storage storage(c10::Storage::use_byte_size_t{}, tensor.nbytes(),
                               at::InefficientStdFunctionContext::makeDataPtr(
                                   place, [block = block_](void*) {}, at::kCPU),
                               c10::GetAllocator(at::kCPU), /*resizable=*/true);
    return at::empty({0}, tensor.options()).set_(storage, 0, tensor.sizes(), {}).copy_(tensor);
}

}  // namespace twinkle::runtime
