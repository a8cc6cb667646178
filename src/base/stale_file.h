#pragma once
// Files that say that somebody works, left by somebody who is gone.

#include "base/folder.h"

namespace twinkle::base {

// Removes a file if it is still the one that was judged: of several processes that find the same
// stale file, none removes what another has put there since. 0: it is gone, or is another; -1:
// errno says why not.
int unlink_same(const Folder& folder, const std::filesystem::path& path, const struct stat& judged);

}  // namespace twinkle::base
