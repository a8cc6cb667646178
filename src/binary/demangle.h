#pragma once
// C++ names as people read them.

#include <string>
#include <string_view>

namespace twinkle::binary {

// "at::Tensor::dim() const" for its mangled name; the name itself where it is none, or where the
// text could be endless: a hostile name of a hundred bytes can stand for gigabytes.
std::string demangle(std::string_view name);

// The outermost namespace that a mangled name says of itself: "c10" for "_ZN3c104impl…", also of
// its vtable or type information. Empty: none, or no C++ name.
std::string_view outer_namespace(std::string_view mangled);

}  // namespace twinkle::binary
