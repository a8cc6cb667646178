#pragma once
// What the fuzz targets share: a trusted root, and valid inputs to start from. They are made by a
// Sigstore instance of our own (tests/sigstore); a fuzzer and the seeds it started from must be of
// the same one, so that valid signatures stay valid.

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

// Of the folder TWINKLE_FUZZ_SEEDS where that is set, else made when it is first asked for.
const World& world();

// For what must never happen: a false accept.
[[noreturn]] void wrong(const char* what);

}  // namespace twinkle::fuzz
