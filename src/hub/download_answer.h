#pragma once
// Is an answer the one to the question, as far as its head tells?

#include <cstdint>
#include <optional>
#include <string>

#include "cache/partial_file.h"
#include "hub/http.h"

namespace twinkle::hub {

// What is wrong with what the Hub sends, in words that go into "expected …, got …".
struct Flaw {
    std::string expected;
    std::string got;
};

std::string bytes_text(std::uint64_t count);

// Is it the file that the tree of the commit has? Headers that a mirror leaves out or makes up are
// no flaw: the hash decides.
std::optional<Flaw> identity_flaw(const Head& head, const std::string& expected_commit,
                                  const std::string& expected_etag);

// Is it the whole file, or the range that the segment needs next?
std::optional<Flaw> size_flaw(const Head& head, bool ranged, const cache::Segment& segment,
                              std::uint64_t size);

}  // namespace twinkle::hub
