#pragma once
// Constant strings of a shared library.

#include <functional>
#include <string_view>

#include "binary/elf_layout.h"

namespace twinkle::binary {

// Calls `visit` for every NUL-terminated string in read-only data that contains `marker` and is no
// longer than `longest`. The file is untrusted: skips whatever is out of bounds. Does not search
// device code.
void for_each_constant_string(const ElfLayout& layout, std::string_view marker, std::size_t longest,
                              const std::function<void(std::string_view)>& visit);

}  // namespace twinkle::binary
