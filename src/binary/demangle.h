#pragma once
// Readable forms of mangled C++ names.

#include <string>
#include <string_view>

namespace twinkle::binary {

// "at::Tensor::dim() const" for its mangled name; the name itself if it is not mangled, or its text
// could be endless: a hostile name of a hundred bytes can stand for gigabytes.
std::string demangle(std::string_view name);

// The outermost namespace in a mangled name: "c10" for "_ZN3c104impl…", also for its vtable or type
// information. Empty: none, or no C++ name.
std::string_view outer_namespace(std::string_view mangled);

}  // namespace twinkle::binary
