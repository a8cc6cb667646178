#pragma once
// The 8 hex digits that keep temporary files of several processes apart.

#include <string>

namespace twinkle::cache {

std::string random_hex8();

}  // namespace twinkle::cache
