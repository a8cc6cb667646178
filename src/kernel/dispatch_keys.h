#pragma once
// The dispatch keys for which a library registers kernels, as far as its file says.

#include <string>
#include <vector>

#include "binary/library.h"

namespace twinkle::kernel {

// Sorted. From the names of TORCH_LIBRARY_IMPL blocks where the library is not stripped, and from
// the names that it hands to the stable ABI. Which operator is registered for which of them only
// running its initializers tells. Empty: the file does not say.
std::vector<std::string> find_dispatch_keys(const binary::ElfLayout& layout,
                                            const binary::Library& library);

}  // namespace twinkle::kernel
