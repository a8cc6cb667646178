#pragma once
// `trust = […]` of a manifest and --trust: whom the user trusts besides the Hub.

#include <span>
#include <string>

namespace twinkle::project {

// Whether one of the entries names the repository ("org/name", also with a state behind "@"), a
// glob that it matches, or its publisher.
bool is_trusted(const std::string& repo_id, std::span<const std::string> trusted);

std::string publisher_of(const std::string& repo_id);

}  // namespace twinkle::project
