#pragma once
// Fuzz targets for the parts of a kernel that are read from outside: libraries, embedded GPU code,
// metadata, compiled packages, Python. As in targets.h, each takes any bytes and throws nothing.

#include <string_view>

namespace twinkle::fuzz {

void fuzz_elf(std::string_view input);       // a shared library
void fuzz_fatbin(std::string_view input);    // a container of GPU code; the first byte says which
void fuzz_metadata(std::string_view input);  // metadata.json
void fuzz_package(std::string_view input);   // what a compiled package says of its operator
void fuzz_python(std::string_view input);    // a package of one source
void fuzz_toml(std::string_view input);      // any document

}  // namespace twinkle::fuzz
