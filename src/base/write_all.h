#pragma once
// All bytes into a descriptor, however many calls of write() that takes.

#include <string_view>

namespace twinkle::base {

// 0, or errno of the call that failed; what came before it is written.
int write_all(int descriptor, std::string_view bytes);

}  // namespace twinkle::base
