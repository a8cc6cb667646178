#include "kernel/precision.h"

#include <algorithm>
#include <cstddef>

namespace twinkle::kernel {

bool is_precision(std::string_view name) {
    constexpr std::size_t longest = 16;
    return !name.empty() && name.size() <= longest && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
}

}  // namespace twinkle::kernel
