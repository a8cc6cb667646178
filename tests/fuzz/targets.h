#pragma once
// The fuzzed functions. Each takes any bytes, throws nothing, and aborts if something is accepted
// that must not be.

#include <string_view>

namespace twinkle::fuzz {

void fuzz_bundle(std::string_view input);        // the JSON of a bundle
void fuzz_certificate(std::string_view input);   // DER; also as a list of certificate timestamps
void fuzz_checkpoint(std::string_view input);    // a signed note
void fuzz_timestamp(std::string_view input);     // an RFC 3161 response
void fuzz_trusted_root(std::string_view input);  // JSON

}  // namespace twinkle::fuzz
