#pragma once
// Opening without following symbolic links, from an open folder on.

#include <sys/types.h>

#include <string>

#include "base/unique_fd.h"

namespace twinkle::base {

// `path` is relative and holds no "..": openat2(2), or one folder after the other where the system
// has or allows none. `mode` is 0 unless a file is created. No descriptor: errno says why; ELOOP: a
// link is in the way, or is what the path names.
UniqueFd open_below(int folder, const std::string& path, int flags, mode_t mode);

}  // namespace twinkle::base
