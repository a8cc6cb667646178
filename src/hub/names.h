#pragma once
// Checks names from outside before they become part of a URL or a path.

#include <string>
#include <string_view>

namespace twinkle::hub {

// Throws Error(malformed) unless it is org/name.
void check_repo_id(std::string_view repo_id);
bool is_repo_id(std::string_view text);

// Throws Error(malformed) for a name that git would not accept as a branch, tag or commit.
void check_revision(std::string_view revision);

// Throws Error(malformed) for a path that path_flaw() objects to.
void check_path(std::string_view path);
// Why a repository's path cannot be used below a local folder; empty if it can.
std::string path_flaw(std::string_view path);

}  // namespace twinkle::hub
