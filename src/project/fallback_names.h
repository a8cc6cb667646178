#pragma once
// When a site may keep its original.

#include <array>
#include <string>
#include <vector>

namespace twinkle::project {

// In the order of twinkle::Fallback.
inline const std::array<std::string, 6> fallback_names = {
    "no-layer",           "no-device",      "no-compatible-properties",
    "no-compatible-mode", "cannot-compile", "cannot-load"};
// Instead of a list of these: all but cannot-load, all, none.
inline const std::array<std::string, 3> fallback_sets = {"true", "all", "false"};

// All that may be given: sets first.
inline std::vector<std::string> fallback_words() {
    std::vector<std::string> words(fallback_sets.begin(), fallback_sets.end());
    words.insert(words.end(), fallback_names.begin(), fallback_names.end());
    return words;
}

}  // namespace twinkle::project
