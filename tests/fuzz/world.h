#pragma once
// Shared by the fuzz targets: a trusted root, and valid inputs to start from. They are made by a
// Sigstore instance of our own (tests/sigstore); a fuzzer and its seeds must use the same instance,
// so that valid signatures stay valid.

#include <map>
#include <string>
#include <vector>

#include "sigstore/trusted_root.h"

namespace twinkle::fuzz {

inline constexpr const char* artifact = "what is signed\n";
inline constexpr const char* other_artifact = "what is not signed\n";

struct World {
    std::string root_json;
    sigstore::TrustedRoot root;
    // By target: "bundle", "certificate", "checkpoint", "timestamp", "trusted_root".
    std::map<std::string, std::vector<std::string>> seeds;
};

World make_world();
World read_world(const std::string& folder);
void write_world(const World& world, const std::string& folder);

// Read from the folder TWINKLE_FUZZ_SEEDS if that is set, else made at the first call.
const World& world();

// Reports what must never happen: a false accept.
[[noreturn]] void wrong(const char* what);

}  // namespace twinkle::fuzz
