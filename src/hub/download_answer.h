#pragma once
// Whether an answer is the one to the request, as far as its headers tell.

#include <cstdint>
#include <optional>
#include <string>

#include "cache/partial_file.h"
#include "hub/http.h"

namespace twinkle::hub {

// A mismatch in an answer, worded for "expected …, got …".
struct Flaw {
    std::string expected;
    std::string got;
};

std::string bytes_text(std::uint64_t count);

// Whether it is the file in the commit's tree. Headers that a mirror omits or makes up are
// accepted: the hash decides.
std::optional<Flaw> identity_flaw(const Head& head, const std::string& expected_commit,
                                  const std::string& expected_etag);

// Whether it is the whole file, or the range that the segment needs next.
std::optional<Flaw> size_flaw(const Head& head, bool ranged, const cache::Segment& segment,
                              std::uint64_t size);

}  // namespace twinkle::hub
