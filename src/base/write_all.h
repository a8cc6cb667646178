#pragma once
// Writes all bytes to a descriptor, in as many write() calls as needed.

#include <string_view>

namespace twinkle::base {

// 0, or errno of the call that failed; earlier bytes are written.
int write_all(int descriptor, std::string_view bytes);

}  // namespace twinkle::base
