#pragma once
// The functions in the limited API of CPython: a library may use these if it is to serve every
// Python from 3.9 on.

#include <string_view>

namespace twinkle::binary {

bool in_limited_api(std::string_view symbol);  // that of Python 3.9

extern const std::string_view limited_api_names;

}  // namespace twinkle::binary
