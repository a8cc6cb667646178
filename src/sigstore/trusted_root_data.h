#pragma once
// data/trusted_root.json, compiled in; CMake writes the definitions.

namespace twinkle::sigstore {

extern const char* const trusted_root_json;
extern const char* const trusted_root_date;

}  // namespace twinkle::sigstore
