#pragma once
// The certificates that this machine trusts, for a libcurl that was built for no distribution.

#include <filesystem>

namespace twinkle::hub {

// The first that there is: the file that the distribution keeps below `root`, else that of certifi
// in the Python environment `prefix`, its own or pip's. Empty: none.
std::filesystem::path find_authorities(const std::filesystem::path& root,
                                       const std::filesystem::path& prefix);

}  // namespace twinkle::hub
