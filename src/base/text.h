#pragma once
// Small text helpers for all parts.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::base {

// `*` matches any run of characters (dots too), `?` one; everything else stands for itself.
bool glob_match(std::string_view pattern, std::string_view text);

// The candidate nearest to `name` by edit distance, if it is near enough to be a typing error.
std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates);

std::vector<std::string> split(std::string_view text, char separator);
std::string join(std::span<const std::string> parts, std::string_view separator);

bool is_utf8(std::string_view text);

// Makes text from outside safe for a terminal: control characters and escapes become \xNN.
std::string printable(std::string_view text);

}  // namespace twinkle::base
